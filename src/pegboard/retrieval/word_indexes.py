"""What is read from the texts of one catalog snapshot, each index built on first use or changed from an earlier one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from threading import Lock

from pegboard.cached_property import cached_property
from pegboard.model import Floats, Mask, Server, Tool
from pegboard.retrieval.exact_names import ExactNames, Places
from pegboard.retrieval.intents import Span, clauses
from pegboard.retrieval.lexical import Bm25f
from pegboard.retrieval.mentions import Mentions
from pegboard.retrieval.name_match import NameIndex
from pegboard.retrieval.service_names import ServiceNames
from pegboard.retrieval.slots import CatalogChange, Occupant, Slots, change_of
from pegboard.retrieval.suspect_index import SuspectIndex
from pegboard.retrieval.tool_texts import fields

PARTS = "bm25", "name", "named"
"""The scores of words, by the names of their weights in a fusion."""
NAMES = frozenset({"lexical", "names", "exact_names", "service_names", "mentions", "suspects"})
LEAST_CHANGES = 1000
"""Tools that come before indexes are built anew, or as many as there are if that is more: words that no tool has any
more stay until then."""

RECENT = 16
"""Queries whose scores are remembered: every request of an agent's loop asks the same."""
MOST_SCORES = 1_000_000
"""The most scores that are remembered, of all queries."""


@dataclass(frozen=True, slots=True)
class WordScores:
    """What the words of a query say: its clauses, the scores of each tool, and the places of those that it names."""

    spans: Sequence[Span]
    parts: Mapping[str, Floats]
    named: Places


class WordIndexes:
    """The indexes of words over the tools of a snapshot.

    ``before`` is an earlier snapshot: if few tools changed since, only these are read, and the rankings are those of
    indexes that are built anew.
    """

    def __init__(self, tools: Sequence[Tool], servers: Mapping[str, Server], before: WordIndexes | None = None) -> None:
        self._tools = tools
        self._servers = servers
        source = before if before is None or before.are_built else before._before
        change = None
        if source is not None and source._changes < max(LEAST_CHANGES, len(tools)):
            change = change_of(source._slots, source._tools, source._servers, tools, servers)
        self._change: CatalogChange | None = change
        self._before: WordIndexes | None = None if change is None else source
        self._slots: Slots = Slots.first(len(tools)) if change is None else change.slots
        self._changes: int = 0 if source is None or change is None else source._changes + len(change.new)
        self._building = Lock()

    @property
    def are_built(self) -> bool:
        """Whether `build` is done."""
        return self.__dict__.keys() >= NAMES

    def build(self) -> None:
        """Build all indexes. Thousands of tools take seconds: not for the event loop."""
        with self._building:
            for name in sorted(NAMES):
                getattr(self, name)
            self._before = None

    @cached_property
    def scores(self) -> Callable[[str], WordScores]:
        """The scores of a query; those of the last queries are remembered."""
        most = min(RECENT, MOST_SCORES // (len(PARTS) * max(1, len(self._tools))))
        return lru_cache(most)(partial(_scores, self.lexical, self.names, self.service_names, self.exact_names))

    @cached_property
    def lexical(self) -> Bm25f:
        if (source := self._source) is None:
            return Bm25f(fields(tool, self._servers.get(tool.server)) for tool in self._tools)
        before, change = source
        return before.lexical.changed(change.slots, _documents(change.gone), _documents(change.new))

    @cached_property
    def names(self) -> NameIndex:
        source = self._source
        return NameIndex(self._tools) if source is None else source[0].names.changed(source[1])

    @cached_property
    def exact_names(self) -> ExactNames:
        source = self._source
        return ExactNames(self._tools) if source is None else source[0].exact_names.changed(source[1])

    @cached_property
    def service_names(self) -> ServiceNames:
        source = self._source
        return ServiceNames(self._tools) if source is None else source[0].service_names.changed(source[1])

    @cached_property
    def mentions(self) -> Mentions:
        source = self._source
        return Mentions(self._tools) if source is None else source[0].mentions.changed(source[1])

    @cached_property
    def suspects(self) -> SuspectIndex:
        source = self._source
        return SuspectIndex(self._tools) if source is None else source[0].suspects.changed(source[1], self._tools)

    @cached_property
    def suspected(self) -> Mask:
        """Which tools have texts that are built to be found instead of others, shape (n,)."""
        return self.suspects.mask

    @property
    def _source(self) -> tuple[WordIndexes, CatalogChange] | None:
        before, change = self._before, self._change
        return None if before is None or change is None else (before, change)


def _scores(
    lexical: Bm25f, names: NameIndex, service_names: ServiceNames, exact_names: ExactNames, query: str
) -> WordScores:
    spans = clauses(query)
    scores = lexical.scores(query), names.scores(query, spans), service_names.scores(query)
    return WordScores(spans, dict(zip(PARTS, map(_fixed, scores), strict=True)), exact_names.find(query))


def _fixed(values: Floats) -> Floats:
    """The same values, not to be changed."""
    view = values.view()
    view.flags.writeable = False
    return view


def _documents(occupants: Iterable[Occupant]) -> Iterable[tuple[int, Mapping[str, str]]]:
    return ((each.slot, fields(each.tool, each.server)) for each in occupants)
