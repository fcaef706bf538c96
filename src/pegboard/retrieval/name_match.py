"""Scores how much of a tool's name a request contains: "create a jira ticket" has all but one word of
`jira_create_issue`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from copy import copy
from functools import lru_cache, reduce
from itertools import chain
from typing import NamedTuple

import numpy as np

from pegboard.model import Floats, Tool
from pegboard.retrieval.intents import Span, with_clauses
from pegboard.retrieval.lexical import inverse_document_frequency
from pegboard.retrieval.postings import Numbers, Postings
from pegboard.retrieval.slots import CatalogChange, Slots
from pegboard.retrieval.words import FUNCTION_WORDS, LONGEST_NAME, LONGEST_RUN, raw_words, remembered, stem

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


class NameIndex:
    """For each tool a number from 0 to 1, shape (n,): the largest a · b of any clause.

    a is the share of the name's words that occur in the clause, b the share of the clause's words that occur in the
    tool's or the server's name; words are weighted by rarity (idf) among the names. So a request with a verb, an object
    and little else finds the tool of that name, and a long text about many things matches no name.
    """

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._slots = Slots.first(len(tools))
        names = [_stems_of(tool.name, *tool.aliases) for tool in tools]
        self._in_name = Postings.of_words(names)
        self._anywhere = Postings.of_words(_words(tool) for tool in tools)
        self._number = {
            word: number for number, word in enumerate(dict.fromkeys(word for name in names for word in name))
        }
        cells = [(slot, self._number[word]) for slot, name in enumerate(names) for word in name]
        self._cells = np.array(cells, np.int32).reshape(len(cells), 2)
        self._containing = np.array([len(self._anywhere.of(word)) for word in self._number], np.int64)
        self._weigh()

    def changed(self, change: CatalogChange) -> NameIndex:
        """The index of the changed catalog."""
        other = copy(self)
        other._slots = change.slots
        names = [(each.slot, _stems_of(each.tool.name, *each.tool.aliases)) for each in change.new]
        left = [(each.slot, _stems_of(each.tool.name, *each.tool.aliases)) for each in change.gone]
        other._in_name = self._in_name.changed(left, names)
        other._anywhere = self._anywhere.changed(
            [(each.slot, _words(each.tool)) for each in change.gone],
            [(each.slot, _words(each.tool)) for each in change.new],
        )
        other._number = dict(self._number)
        for word in (word for _, name in names for word in name):
            other._number.setdefault(word, len(other._number))
        other._containing = np.zeros(len(other._number), np.int64)
        other._containing[: len(self._containing)] = self._containing
        for word in {word for each in (*change.gone, *change.new) for word in _words(each.tool)}:
            if (number := other._number.get(word)) is not None:
                other._containing[number] = len(other._anywhere.of(word))
        cells = [(slot, other._number[word]) for slot, name in names for word in name]
        stays = ~np.isin(self._cells[:, 0], [slot for slot, _ in left])
        other._cells = np.concatenate([self._cells[stays], np.array(cells, np.int32).reshape(len(cells), 2)])
        other._weigh()
        return other

    def _weigh(self) -> None:
        """Compute what depends on all tools: the weight of each name, and that of a word that no tool has."""
        size = len(self._slots.of_place)
        self._unknown = float(inverse_document_frequency(size, np.zeros(1, np.int64))[0])
        idf = inverse_document_frequency(size, self._containing).astype(np.float64)
        totals = np.bincount(self._cells[:, 0], idf[self._cells[:, 1]], self._slots.size)
        self._total = np.maximum(totals.astype(np.float32), np.float32(1e-9))

    def scores(self, query: str, spans: Sequence[Span]) -> Floats:
        """The largest score of the whole query and each of its clauses."""
        texts = [query] if len(spans) < 2 else with_clauses(query, spans)
        known: dict[str, Sequence[StandIn]] = {}
        return self._slots.in_order(reduce(np.maximum, (self._score(text, known) for text in texts)))

    def _score(self, text: str, known: dict[str, Sequence[StandIn]]) -> Floats:
        said: dict[str, StandIn] = {}
        asked, answered = 0.0, np.zeros(self._slots.size, np.float32)
        for word in dict.fromkeys(_stems((text,))):
            if (close := known.get(word)) is None:
                close = known[word] = self._close(word)
            rarity = max((each.rarity * each.credit for each in close), default=self._unknown)
            asked += rarity
            for each in close:
                if (before := said.get(each.word)) is None or before.credit < each.credit:
                    said[each.word] = each
            self._answer(answered, np.float32(rarity), close)
        covered = np.zeros(self._slots.size, np.float32)
        for each in said.values():
            covered[self._in_name.of(each.word)] += np.float32(each.credit * each.rarity)
        return np.asarray(covered / self._total * (answered / max(asked, 1e-9)), np.float32)

    def _answer(self, answered: Floats, rarity: np.float32, close: Sequence[StandIn]) -> None:
        """Add what a word of the text is worth to the tools that have it, or a word that it may stand for."""
        if len(close) == 1:
            answered[close[0].slots] += rarity * np.float32(close[0].credit)
        elif close:
            best = np.zeros(self._slots.size, np.float32)
            for each in close:
                best[each.slots] = np.maximum(best[each.slots], np.float32(each.credit))
            answered += rarity * best

    def _close(self, word: str) -> list[StandIn]:
        """The words of names that a word may stand for: its synonyms, and then itself."""
        found = []
        for each in (*NEAR.get(word, ()), word):
            slots = self._anywhere.of(each)
            if len(slots):
                rarity = _rarity(len(self._slots.of_place), len(slots))
                found.append(StandIn(each, 1.0 if each == word else NEARLY, rarity, slots))
        return found


class StandIn(NamedTuple):
    """A word of names that a word of a request may stand for: its ``credit`` then, its rarity (idf), and the slots of
    the tools that have it."""

    word: str
    credit: float
    rarity: float
    slots: Numbers


@lru_cache(maxsize=8_192)
def _rarity(documents: int, containing: int) -> float:
    return float(inverse_document_frequency(documents, np.array([containing]))[0])


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
    return chain.from_iterable(_stems_in(word) for text in texts for word in raw_words(text))


def _stems_in(word: str) -> Sequence[str]:
    return _repeated_stems(word) if len(word) <= LONGEST_RUN else _cut_stems(word)


@lru_cache(maxsize=65_536)
def _repeated_stems(word: str) -> Sequence[str]:
    return _cut_stems(word)


def _cut_stems(word: str) -> Sequence[str]:
    return () if word in FUNCTION_WORDS else tuple(map(stem, written_out(word)))


@remembered(REMEMBERED, LONGEST_NAME)
def _stems_of(*texts: str) -> frozenset[str]:
    return frozenset(_stems(texts))


def _words(tool: Tool) -> frozenset[str]:
    """The stems of its name and its server's."""
    return _stems_of(tool.name, *tool.aliases) | _stems_of(tool.server)


NEAR: Mapping[str, Set[str]] = _near()
"""The synonyms of each stem, as stems."""
