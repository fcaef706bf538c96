"""Finds tools that do the same job on different servers, by similar names and meanings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from pegboard.model import Floats, Tool
from pegboard.retrieval.name_words import LEADING_VERBS, VERBS, words_of
from pegboard.retrieval.words import LONGEST_NAME, remembered, stem

SAME_NAME = 0.63
"""Minimum cosine of two tools with equivalent names."""
SIMILAR_NAME = 0.85
"""Minimum cosine of two tools whose names share the verb and half of their words.

Both were set by reading pairs of tools of real catalogs and depend on the encoder (`scripts/read_duplicates.py`).
"""
SHARED_WORDS = 0.5
REMEMBERED = 4_096
"""Names whose words are remembered."""
BLOCK = 256
"""Rows of the cosine matrix in memory at a time."""

SYNONYMS = (
    "get fetch read retrieve show describe",
    "create add insert",
    "delete remove",
    "update edit modify change",
    "search find query lookup",
    "execute run perform",
)
VERB_CLASS = {stem(word): stem(group.split()[0]) for group in SYNONYMS for word in group.split()}

Groups = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class JobName:
    """A tool's name without its server's: the verbs ``done``, and all words as ``stems`` and as ``written``."""

    done: frozenset[str]
    stems: frozenset[str]
    written: frozenset[str]

    def resembles(self, other: JobName) -> bool:
        """Whether both have the same verbs and share at least half of their words."""
        shared = len(self.stems & other.stems)
        return self.done == other.done and shared >= SHARED_WORDS * len(self.stems | other.stems)


def duplicate_groups(tools: Sequence[Tool], vectors: Floats) -> Groups:
    """For each tool the index of the first tool that does the same job, or its own, shape (n,).

    ``vectors``, shape (n, d), are unit vectors of names and descriptions. A group has at most one tool per server, and
    all its pairs are alike (complete linkage, most alike first). A tool without a description, or without words in its
    name, is in no group.
    """
    return Duplicates.among(tools, vectors).groups


@dataclass(frozen=True, slots=True)
class Duplicates:
    """The ``groups`` of `duplicate_groups` and the pairs of places that they come from, the most alike first."""

    groups: Groups
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    cosines: Floats

    @classmethod
    def among(cls, tools: Sequence[Tool], vectors: Floats) -> Duplicates:
        names = [_job_name(tool) for tool in tools]
        found = list(_alike(tools, names, vectors))
        rows, columns, cosines = (np.concatenate(parts) for parts in zip(*found, strict=True)) if found else _NONE
        pairs = _sorted(rows, columns, cosines)
        return cls(_linked(np.arange(len(tools)), *pairs[:2]), *pairs)

    def changed(self, kept: NDArray[np.intp], tools: Sequence[Tool], vectors: Floats) -> Duplicates:
        """Those of a changed catalog, where ``kept`` are the places that its tools had before, -1 for new ones.

        Only new tools are compared, and only groups linked again that have pairs with what came or went.
        """
        if not len(self.groups):
            return Duplicates.among(tools, vectors)
        now = np.full(len(self.groups), -1, np.intp)
        now[kept[kept >= 0]] = np.flatnonzero(kept >= 0)
        rows, columns = now[self.rows], now[self.columns]
        stays = (rows >= 0) & (columns >= 0)
        touched = np.zeros(len(tools), np.bool_)
        touched[kept < 0] = True
        torn = np.concatenate([rows[~stays], columns[~stays]])
        touched[torn[torn >= 0]] = True
        found = [(rows[stays], columns[stays], self.cosines[stays])]
        if len(set(map(attrgetter("id.server"), tools))) > 1:
            found += [_alike_one(place, kept, tools, vectors) for place in np.flatnonzero(kept < 0).tolist()]
        pairs = _sorted(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
        rows, columns, _ = pairs
        while (spread := touched[rows] != touched[columns]).any():
            touched[rows[spread]] = touched[columns[spread]] = True
        groups = np.where(touched, np.arange(len(tools)), now[self.groups[kept]])
        again = touched[rows]
        return Duplicates(_linked(groups, rows[again], columns[again]), *pairs)


_NONE = (np.zeros(0, np.intp), np.zeros(0, np.intp), np.zeros(0, np.float32))


def _sorted(
    rows: NDArray[np.intp], columns: NDArray[np.intp], cosines: Floats
) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
    order = np.lexsort((columns, rows, -cosines))
    return rows[order], columns[order], cosines[order]


def _alike_one(
    place: int, kept: NDArray[np.intp], tools: Sequence[Tool], vectors: Floats
) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
    """The pairs of a new tool, and their cosines; those with new tools before it are theirs."""
    cosines = vectors @ vectors[place]
    tool, name = tools[place], _job_name(tools[place])
    others: list[int] = []
    for other in np.flatnonzero(cosines >= SAME_NAME).tolist():
        is_theirs = other == place or (kept[other] < 0 and other < place)
        if (
            not is_theirs
            and tools[other].server != tool.server
            and _is_described(tools[other], _job_name(tools[other]))
        ):
            same = name.written == _job_name(tools[other]).written
            if same or (cosines[other] >= SIMILAR_NAME and name.resembles(_job_name(tools[other]))):
                others.append(other)
    if not _is_described(tool, name):
        others = []
    partners = np.array(others, np.intp)
    return np.minimum(place, partners), np.maximum(place, partners), cosines[partners]


def _is_described(tool: Tool, name: JobName) -> bool:
    return bool(tool.description.strip() and name.written)


def _job_name(tool: Tool) -> JobName:
    return _name_on(tool.server, tool.name)


@remembered(REMEMBERED, LONGEST_NAME)
def _name_on(server: str, name: str) -> JobName:
    """Verbs are replaced by their class; leading words that repeat the server's name are dropped."""
    of_server = {word.stem for word in words_of(server) if word.text not in LEADING_VERBS}
    words = words_of(name)
    own = list(dropwhile(lambda word: word.stem in of_server, words)) or words
    done = frozenset(_class(word.stem) for word in own if word.text in VERBS or word.text in LEADING_VERBS)
    return JobName(
        done=done,
        stems=frozenset(_class(word.stem) for word in own),
        written=done | frozenset(word.text for word in own if _class(word.stem) not in done),
    )


def _class(verb: str) -> str:
    return VERB_CLASS.get(verb, verb)


def _alike(
    tools: Sequence[Tool], names: Sequence[JobName], vectors: Floats
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp], Floats]]:
    """Pairs of tools on different servers that do the same job, and their cosines, one block of rows at a time."""
    servers = _numbered([tool.server for tool in tools])
    if not servers.any():  # one server: most boards of thousands of tools
        return
    keys = _numbered([name.written for name in names])
    described = np.array([_is_described(tool, name) for tool, name in zip(tools, names, strict=True)], np.bool_)
    for start in range(0, len(tools), BLOCK):
        cosines = vectors[start : start + BLOCK] @ vectors[start:].T
        alike = np.triu(cosines >= SAME_NAME, 1)
        alike &= (cosines >= SIMILAR_NAME) | (keys[start : start + BLOCK, None] == keys[None, start:])
        alike &= servers[start : start + BLOCK, None] != servers[None, start:]
        alike &= described[start : start + BLOCK, None] & described[None, start:]
        rows, columns = np.nonzero(alike)
        rows, columns, found = rows + start, columns + start, cosines[rows, columns]
        agreed = _agree(names, keys, rows, columns)
        yield rows[agreed], columns[agreed], found[agreed]


def _agree(
    names: Sequence[JobName], keys: NDArray[np.intp], rows: NDArray[np.intp], columns: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Whether the names of each pair agree; each distinct pair of names is compared once."""
    _, first, which = np.unique(keys[rows] * len(keys) + keys[columns], return_index=True, return_inverse=True)
    verdicts = [
        names[row].written == names[column].written or names[row].resembles(names[column])
        for row, column in zip(rows[first].tolist(), columns[first].tolist(), strict=True)
    ]
    return np.array(verdicts, np.bool_)[which]


def _numbered(values: Sequence[object]) -> NDArray[np.intp]:
    """A number for each value, equal for equal values."""
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], np.intp)


def _linked(groups: Groups, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Groups:
    """Groups in which every two tools are a pair: each pair, in order, merges its tools' groups if that holds.

    ``groups`` are those before; tools with pairs are alone in theirs.
    """
    pairs = list(zip(rows.tolist(), columns.tolist(), strict=True))
    alike = set(pairs)
    members = {place: [place] for pair in pairs for place in pair}
    linked = {place: place for place in members}
    for pair in pairs:
        one, other = sorted((linked[pair[0]], linked[pair[1]]))
        if one == other:
            continue
        if all((min(a, b), max(a, b)) in alike for a in members[one] for b in members[other]):
            members[one] += members[other]
            for place in members[other]:
                linked[place] = one
    groups = groups.copy()
    groups[list(linked)] = list(linked.values())
    return groups
