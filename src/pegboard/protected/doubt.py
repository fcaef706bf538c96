"""Tools of a client that nobody has a row for: what is not from a catalog is kept in doubt.

A catalog shows itself by its names: tools of one server share what stands before their names, or several do different
things to one object. What shares nothing with the many beside it is likely the client's own, and so is what its
instructions speak of, and what an agent works with (`workshop`). Where names tell nothing, nothing is made of them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from pegboard.protected.workshop import of_workshop
from pegboard.retrieval.name_words import LEADING_VERBS, Word, words_of

SERVER = re.compile(r"[^_./:-][^./:]*?(?:__|--|::|[./:])(?=[^_./:-])")
"""What clients put before a tool's name, with a mark that names do not have."""
LEAST_MARKED = 10
"""Tools with such a mark, from which on those without it are not from a catalog."""
LEAST_ALIKE = 4
"""Tools that begin with the same word, and so are of one server."""
LEAST_OF_OBJECT = 3
"""Different things that are done to one object of a catalog."""
HALF = 0.5
"""Share of the tools that has to be from catalogs before the others are conspicuous."""
MOST = 32
"""Tools that are kept in doubt, beside those that are named: more would be a catalog."""
LISTED = 0.8
"""Share of the tools that instructions speak of from which on they list them, and single none out."""
MOST_LISTED = 40
"""So many tools may all be a client's own."""
LONGEST = 200_000
"""Characters of instructions that are looked through."""
WRITTEN = re.compile(r"[\w.:/-]*\w")


def doubtful(names: Sequence[str], definitions: Sequence[bytes], instructions: Sequence[str]) -> set[int]:
    """The places of the tools that may be the client's own; those that nothing names are at most `MOST`."""
    own = [] if _is_marked(names) else of_workshop(definitions)
    return named_in(names, instructions) | set(list(dict.fromkeys([*conspicuous_in(names), *own]))[:MOST])


def conspicuous_in(names: Sequence[str]) -> list[int]:
    """Tools that share nothing with the many from catalogs beside them, if those are many."""
    found = from_catalogs(names)
    others = [place for place in range(len(names)) if place not in found]
    return others if len(found) >= HALF * len(names) and len(others) <= MOST else []


def named_in(names: Sequence[str], instructions: Sequence[str]) -> set[int]:
    """Tools that the instructions speak of by name; a name that is an everyday word has to be marked as one."""
    text = "\n".join(instructions)[:LONGEST]
    written = frozenset(WRITTEN.findall(text))
    found = {
        place for place, name in enumerate(names) if name in written and (not _is_word(name) or _is_quoted(name, text))
    }
    return set() if len(found) > LISTED * len(names) and len(names) > MOST_LISTED else found


def from_catalogs(names: Sequence[str]) -> set[int]:
    """The places of tools that come from catalogs, by their names alone."""
    if _is_marked(names):
        return {place for place, name in enumerate(names) if SERVER.match(name)}
    words = [words_of(name) for name in names]
    first = [_first_word(of_name) for of_name in words]
    uses = Counter(first)
    alike = {place for place, word in enumerate(first) if word and uses[word] >= LEAST_ALIKE}
    if len(alike) >= HALF * len(names):
        return alike
    objects = [frozenset(word.stem for word in of_name if word.is_about) for of_name in words]
    done: dict[frozenset[str], set[str]] = defaultdict(set)
    for of_name, about in zip(words, objects, strict=True):
        if about and of_name[0].text in LEADING_VERBS:
            done[about].add(of_name[0].stem)
    return alike | {place for place, about in enumerate(objects) if len(done.get(about, ())) >= LEAST_OF_OBJECT}


def _is_marked(names: Sequence[str]) -> bool:
    """Whether this client marks the tools of catalogs."""
    return sum(SERVER.match(name) is not None for name in names) >= LEAST_MARKED


def _first_word(name: Sequence[Word]) -> str:
    """The word that may stand for a server: no verb, and with more behind it than a number."""
    says_more = any(not word.text.isdigit() for word in name[1:])
    return name[0].stem if says_more and name[0].text not in LEADING_VERBS else ""


def _is_word(name: str) -> bool:
    return name.isalpha() and (name.islower() or name.istitle())


def _is_quoted(name: str, text: str) -> bool:
    return re.search(rf"[`'\"<*]{name}[`'\">*(]|\b{name} tool\b|\btool {name}\b", text) is not None
