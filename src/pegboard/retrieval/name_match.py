"""Scores how much of a tool's name a request contains: "create a jira ticket" has all but one word of
`jira_create_issue`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pegboard.model import Floats, Tool
from pegboard.retrieval.intents import Span, with_clauses
from pegboard.retrieval.lexical import inverse_document_frequency
from pegboard.retrieval.words import FUNCTION_WORDS, raw_words, stem

ABBREVIATIONS: Mapping[str, str] = {
    "db": "database",
    "dir": "directory",
    "dm": "direct message",
    "k8s": "kubernetes",
    "mr": "merge request",
    "msg": "message",
    "org": "organization",
    "pr": "pull request",
    "repo": "repository",
}
"""Abbreviations and what they stand for; plurals too."""
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
"""One group of synonyms a line, for verbs and nouns in requests and tool names."""
NEARLY = 0.7
"""The credit of a synonym; the word itself has 1."""
REMEMBERED = 32_768
"""Names whose stems are remembered, so that indexing a changed catalog costs little more than its new names."""
Places = NDArray[np.intp]


class NameIndex:
    """For each tool a number from 0 to 1, shape (n,): the largest a · b of any clause.

    a is the share of the name's words that occur in the clause, b the share of the clause's words that occur in the
    tool's or the server's name; words are weighted by rarity (idf) among the names. So a request with a verb, an object
    and little else finds the tool of that name, and a long text about many things matches no name.
    """

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._size = len(tools)
        names = [_stems_of(tool.name, *tool.aliases) for tool in tools]
        servers = [_stems_of(tool.server) for tool in tools]
        self._in_name = _places(names)
        self._anywhere = _places([name | server for name, server in zip(names, servers, strict=True)])
        containing = np.array([len(places) for places in self._anywhere.values()], np.int64)
        idf = inverse_document_frequency(self._size, containing)
        self._idf: Mapping[str, float] = dict(zip(self._anywhere, idf.tolist(), strict=True))
        self._unknown = float(inverse_document_frequency(self._size, np.zeros(1, np.int64))[0])
        totals = [sum(self._idf[word] for word in name) for name in names]
        self._total = np.maximum(np.array(totals, np.float32), np.float32(1e-9))

    def scores(self, query: str, spans: Sequence[Span]) -> Floats:
        """The largest score of the whole query and each of its clauses."""
        texts = [query] if len(spans) < 2 else with_clauses(query, spans)
        return np.asarray(np.max([self._score(text) for text in texts], axis=0), np.float32)

    def _score(self, text: str) -> Floats:
        said: dict[str, float] = {}
        asked, answered = 0.0, np.zeros(self._size, np.float32)
        for word in dict.fromkeys(_stems((text,))):
            close = self._close(word)
            rarity = max((self._idf[each] * credit for each, credit in close.items()), default=self._unknown)
            asked += rarity
            best = np.zeros(self._size, np.float32)
            for each, credit in close.items():
                said[each] = max(said.get(each, 0.0), credit)
                best[self._anywhere[each]] = np.maximum(best[self._anywhere[each]], credit)
            answered += np.float32(rarity) * best
        covered = np.zeros(self._size, np.float32)
        for word, credit in said.items():
            if word in self._in_name:
                covered[self._in_name[word]] += np.float32(credit * self._idf[word])
        return np.asarray(covered / self._total * (answered / max(asked, 1e-9)), np.float32)

    def _close(self, word: str) -> dict[str, float]:
        """The words of names that a word may stand for, with the credit of each."""
        near = {each: NEARLY for each in NEAR.get(word, ()) if each in self._idf}
        return near | ({word: 1.0} if word in self._idf else {})


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


def _stems(texts: Iterable[str]) -> Iterable[str]:
    for text in texts:
        for word in raw_words(text):
            if word not in FUNCTION_WORDS:
                yield from map(stem, written_out(word))


@lru_cache(maxsize=REMEMBERED)
def _stems_of(*texts: str) -> frozenset[str]:
    return frozenset(_stems(texts))


def _places(documents: Sequence[Iterable[str]]) -> dict[str, Places]:
    found: dict[str, list[int]] = {}
    for place, words in enumerate(documents):
        for word in sorted(words):
            found.setdefault(word, []).append(place)
    return {word: np.array(places, np.intp) for word, places in found.items()}


NEAR: Mapping[str, Set[str]] = _near()
"""The synonyms of each stem, as stems."""
