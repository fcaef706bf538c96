"""Activity from events: which entries an event begins or changes. Without I/O.

A search, route or list of an MCP client, what is pushed to it, a shortened result, a model request and a route of the
HTTP API begin an entry; calls, reported outcomes and further searches of the same conversation are noted in the last.
"""

from __future__ import annotations

import itertools
import os
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from http import HTTPStatus
from itertools import islice
from math import nan
from typing import Any, NamedTuple, TypeVar

from pegboard.activity_entries import (
    NO_MONEY,
    NOT_RANKED,
    ActivityEntry,
    ActivityKind,
    Door,
    scores_in_columns,
)
from pegboard.events import (
    CallFinished,
    Event,
    ModelRequestServed,
    OutcomeReported,
    ResultRead,
    ResultShaped,
    RouteAnswered,
    RouteDecided,
    ToolsListed,
    ToolsOffered,
    ToolsSearched,
)
from pegboard.model_prices import PriceTable

MOST_OPEN = 1_000
"""Decisions and conversations that are remembered."""
MOST_NAMES = 4_096
"""Names of tools that are known to be clean: most decisions have the same candidates."""
MOST_TOOLS = 30
"""Candidates and calls of one entry."""
MOST_OFFERED = 100
"""Tools of one entry that its client had at hand: those of the answer, and those that it is listed anyway."""
LONGEST_NAME = 200
LONGEST_TEXT = 2_000
T = TypeVar("T")


class ActivityBook:
    """The entries of the events that it takes, in the order of the events. ``prices`` are those of definitions."""

    def __init__(self, prices: PriceTable) -> None:
        self._prices = prices
        self._ids = map(f"{os.urandom(8).hex()}{{:016x}}".format, itertools.count())
        self._decisions: OrderedDict[str, _Decision] = OrderedDict()
        self._last: OrderedDict[str, ActivityEntry] = OrderedDict()
        self._takes: Mapping[type[Event], Callable[[Any], list[ActivityEntry]]] = {
            RouteDecided: self._decided,
            ModelRequestServed: self._served,
            ToolsListed: self._listed,
            ToolsSearched: self._searched,
            ToolsOffered: self._offered,
            RouteAnswered: self._routed,
            CallFinished: self._called,
            ResultShaped: self._shaped,
            ResultRead: self._read,
            OutcomeReported: self._reported,
        }
        self.kinds = frozenset(self._takes)

    def take(self, event: Event) -> list[ActivityEntry]:
        """The entries that the event begins or changes."""
        return self._takes[type(event)](event)

    @property
    def open_ids(self) -> frozenset[str]:
        """Of the entries that may still change."""
        return frozenset(entry.id for entry in self._last.values())

    def forget(self, conversation: str) -> None:
        """Forget the entries of a conversation: a later call or outcome is not tied to what was erased."""
        for owner in [owner for owner, entry in self._last.items() if entry.conversation == conversation]:
            del self._last[owner]

    def _decided(self, event: RouteDecided) -> list[ActivityEntry]:
        if event.turn_id:
            _remember(self._decisions, event.turn_id, _Decision(event))
        return []

    def _served(self, event: ModelRequestServed) -> list[ActivityEntry]:
        said, failed = self._said(event.decision, "llm"), event.status >= HTTPStatus.BAD_REQUEST
        before, after, price = event.tokens_before, event.tokens_after, self._prices.price_of(event.model)
        prompt = event.input_tokens, event.prompt_cost
        entry = ActivityEntry(
            id=self._new_id(),
            at=event.at,
            door="llm",
            kind="request",
            key=event.key,
            conversation=event.conversation,
            text=said.text,
            upstream=event.upstream,
            model=clean(event.model),
            profile=said.profile,
            encoder=said.encoder,
            outcome=event.outcome,
            tools=event.tools,
            offered=event.kept,
            scores=said.scores,
            called=_names(event.called),
            brought_back=_names(event.brought_back),
            searches=event.searches,
            tokens_before=before,
            tokens_after=after,
            billed=NO_MONEY if price is None else price.definitions(after, *prompt),
            saved=NO_MONEY if price is None else price.definitions(before - after, *prompt),
            latency_ms=event.added_ms,
            error=event.failure or (f"status {event.status}" if failed else ""),
            input_tokens=event.input_tokens,
            cached_tokens=event.cached_tokens,
            written_tokens=event.written_tokens,
            output_tokens=event.output_tokens,
            cost=event.cost or NO_MONEY,
            unpriced=int(event.metered and event.cost is None),
        )
        return [entry]

    def _listed(self, event: ToolsListed) -> list[ActivityEntry]:
        entry = ActivityEntry(
            id=self._new_id(),
            at=event.at,
            door="mcp",
            kind="list",
            key=event.key,
            client=clean(event.client),
            conversation=event.conversation,
            outcome=event.exposure,
            tools=event.tools,
            offered=event.listed,
            tokens_before=event.tokens_before,
            tokens_after=event.tokens_after,
        )
        _remember(self._last, _owner(event), entry)
        return [entry]

    def _searched(self, event: ToolsSearched) -> list[ActivityEntry]:
        return self._asked(self._found(event, "search", event.found), _owner(event))

    def _offered(self, event: ToolsOffered) -> list[ActivityEntry]:
        """Nobody asked for a push: the calls that follow are still of what was asked for before."""
        entry = self._found(event, event.way, event.offered)
        return [entry] if event.way == "push" else self._asked(entry, _owner(event))

    def _found(self, event: ToolsSearched | ToolsOffered, kind: ActivityKind, found: int) -> ActivityEntry:
        return ActivityEntry(
            id=self._new_id(),
            at=event.at,
            door="mcp",
            kind=kind,
            key=event.key,
            client=clean(event.client),
            conversation=event.conversation,
            outcome="found" if found else "nothing found",
            offered=found,
            **self._said(event.decision, "mcp", event.at_hand)._asdict(),
        )

    def _asked(self, entry: ActivityEntry, owner: str) -> list[ActivityEntry]:
        """The entry, and the one before it if nothing of that was called."""
        changed, before = list[ActivityEntry](), self._last.get(owner)
        if before is not None and not before.called:
            changed.append(before._replace(searches=before.searches + 1))
        _remember(self._last, owner, entry)
        return [*changed, entry]

    def _routed(self, event: RouteAnswered) -> list[ActivityEntry]:
        entry = ActivityEntry(
            id=event.decision,
            at=event.at,
            door="api",
            kind="route",
            key=event.key,
            conversation=event.conversation,
            tools=event.tools,
            offered=event.offered,
            tokens_before=event.tokens_before,
            tokens_after=event.tokens_after,
            **self._said(event.decision, "api")._asdict(),
        )
        _remember(self._last, f"route {event.decision}", entry)
        return [entry]

    def _called(self, event: CallFinished) -> list[ActivityEntry]:
        return self._note(_owner(event), event.tool, success=event.success)

    def _shaped(self, event: ResultShaped) -> list[ActivityEntry]:
        return [self._result(event, "kept" if event.kept else "shaped", event.tokens_before, event.tokens_after)]

    def _read(self, event: ResultRead) -> list[ActivityEntry]:
        """What is read on is spent: it takes away from what was saved."""
        return [self._result(event, "read", 0, event.tokens)]

    def _result(self, event: ResultShaped | ResultRead, outcome: str, before: int, after: int) -> ActivityEntry:
        """The call whose result it is, is noted where it was asked for."""
        return ActivityEntry(
            id=self._new_id(),
            at=event.at,
            door=event.door,
            kind="result",
            key=event.key,
            conversation=event.conversation,
            upstream=clean(event.tool),
            outcome=outcome,
            tokens_before=before,
            tokens_after=after,
        )

    def _reported(self, event: OutcomeReported) -> list[ActivityEntry]:
        return self._note(f"route {event.decision}", event.tool, success=event.success)

    def _note(self, owner: str, tool: str, *, success: bool) -> list[ActivityEntry]:
        """The last entry of its owner with one more call."""
        last = self._last.get(owner)
        if last is None or len(last.called) >= MOST_TOOLS:
            return []
        entry = last._replace(called=(*last.called, clean(tool)), failures=last.failures + (not success))
        _remember(self._last, owner, entry)
        return [entry]

    def _new_id(self) -> str:
        """Ids of a process follow each other: those of a batch are in the same pages of a store's index."""
        return next(self._ids)

    def _said(self, decision: str, door: Door, at_hand: tuple[str, ...] | None = None) -> _Said:
        """What the event of a decision says, if it is still known; with ``at_hand``, these tools were offered."""
        known = self._decisions.get(decision)
        if known is None:
            return NOTHING_SAID
        return known.said(door) if at_hand is None else known.with_offered(at_hand, door)


class _Said(NamedTuple):
    """What entries say of their decision."""

    text: str = ""
    profile: str = ""
    encoder: str = ""
    scores: str = NOT_RANKED
    latency_ms: float = 0.0


NOTHING_SAID = _Said()


class _Decision:
    """A decision, and what entries of a door say of it: requests that follow each other often share one. Nothing else
    of it is kept: one may name thousands of tools, twice and more."""

    __slots__ = ("_made", "_said")

    def __init__(self, made: RouteDecided) -> None:
        best = dict(islice(made.scores.items(), MOST_TOOLS))
        active = tuple(name for name in made.active_set if name in best)
        query = made.query[:LONGEST_TEXT]
        self._made = replace(made, scores=best, active_set=active, query=query, candidates=(), gated_out_by_state=())
        self._said: dict[Door, _Said] = {}

    def said(self, door: Door) -> _Said:
        found = self._said.get(door)
        if found is None:
            made, named = self._made, _model_tool if door == "llm" else _tool
            text = clean(made.query, LONGEST_TEXT)
            found = _Said(text, made.profile, made.encoder, _scored(made, named), made.latency_ms)
            self._said[door] = found
        return found

    def with_offered(self, tools: tuple[str, ...], door: Door) -> _Said:
        """What is said if these tools were offered, not what the ranking chose. Those that are not among the best
        candidates come last, without a score; of very many, the first are named and the others counted."""
        made, named = self._made, _model_tool if door == "llm" else _tool
        scores = {**made.scores, **{tool: nan for tool in tools[:MOST_OFFERED] if tool not in made.scores}}
        return self.said(door)._replace(scores=_scored(replace(made, scores=scores, active_set=tools), named))


def clean(text: str, longest: int = LONGEST_NAME) -> str:
    """The text, cut, without what a store cannot keep: NUL and half of a surrogate pair."""
    cut = text[:longest]
    if not cut.isascii():
        cut = cut.encode("utf-8", "replace").decode()
    return cut.replace("\x00", "\ufffd")


def _scored(made: RouteDecided, named: Callable[[str], str]) -> str:
    """The best candidates, and how many others were active."""
    active = set(made.active_set)
    offered = [place for place, name in enumerate(made.scores) if name in active]
    more = len(active) - len(offered)
    return scores_in_columns(list(map(named, made.scores)), list(made.scores.values()), offered, more)


_known = lru_cache(MOST_NAMES)(clean)


def _tool(name: str) -> str:
    return _known(name[:LONGEST_NAME])


def _model_tool(name: str) -> str:
    """A model's tools have no server."""
    return _tool(name.partition("/")[2])


def _names(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(_tool, names[:MOST_TOOLS])) if names else ()


def _owner(event: ToolsListed | ToolsSearched | ToolsOffered | CallFinished) -> str:
    """Whose calls follow a decision: those of its conversation, else of its key."""
    return event.conversation or f"key {event.key}"


def _remember(known: OrderedDict[str, T], name: str, value: T) -> None:
    known[name] = value
    known.move_to_end(name)
    if len(known) > MOST_OPEN:
        known.popitem(last=False)
