"""Words that requests and the names of tools use for one thing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Set

from pegboard.retrieval.words import stem

ABBREVIATIONS: Mapping[str, str] = {
    "db": "database",
    "dir": "directory",
    "dm": "direct message",
    "mr": "merge request",
    "msg": "message",
    "org": "organization",
    "pr": "pull request",
    "repo": "repository",
}
"""What a word stands for, written out; plurals too."""

GROUPS = """
issue ticket bug
directory folder
document doc
email mail
image picture photo
organization organisation
information info detail
configuration config setting
event meeting appointment
user member person people
create add make new insert open file
delete remove drop erase destroy
update edit modify change set
get fetch retrieve read show view display
search find query lookup
list enumerate
send post publish
run execute invoke
move rename
"""
"""One group a line: what tools do and what they do it to, as agents and people ask for it."""


def written_out(word: str) -> list[str]:
    """
    >>> written_out("prs"), written_out("branch")
    (['pull', 'request'], ['branch'])
    """
    return (ABBREVIATIONS.get(word) or ABBREVIATIONS.get(word.removesuffix("s")) or word).split()


def _near() -> Mapping[str, frozenset[str]]:
    near: defaultdict[str, set[str]] = defaultdict(set)
    for line in GROUPS.split("\n"):
        stems = {stem(word) for word in line.split()}
        for each in stems:
            near[each] |= stems - {each}
    return {each: frozenset(others) for each, others in near.items()}


NEAR: Mapping[str, Set[str]] = _near()
"""The stems that may stand for a stem."""
