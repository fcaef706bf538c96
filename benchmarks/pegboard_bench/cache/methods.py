"""Ways of choosing the tools of each request. None sees a later turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pegboard.gateways.llm.conversation.stickiness import LEAST_SEEN
from pegboard.prompt_cache.account import NOTHING_YET, CacheAccount
from pegboard.prompt_cache.cache_prices import CachePrices
from pegboard.prompt_cache.rule import Moment, bill_now, verdict, whole_bill_now
from pegboard.prompt_cache.ways import WAYS, cheapest_way
from pegboard.settings.llm import Way
from pegboard.traffic import Seen, Traffic, Turned
from pegboard_bench.cache.boards import ToolBoard
from pegboard_bench.cache.sessions import ASKED, SYSTEM, Cell, Turn

Places = frozenset[int]
MOST_FOUND = 5
"""Tools that a search returns at most, Anthropic's or the gateway's."""
HOSTED_SEARCH = 130
"""Tokens of the provider's search tool, taken to weigh as much as `call_tool`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """``tools`` in `tools`, in their order (None: `call_tool` in place of them all); ``injected`` tools have their
    definitions put before the user's message, ``referred`` ones behind it. ``offered`` is
    what the model can call now. ``search`` are the tokens of a search for tools in front of all, if there is one, which
    puts what it ``found`` behind the user's message.
    """

    tools: tuple[int, ...] | None
    offered: Places
    injected: tuple[int, ...] = ()
    referred: tuple[int, ...] = ()
    search: int = 0
    found: tuple[int, ...] = ()


class Method(Protocol):
    def send(self, turn: Turn) -> Sent: ...


@dataclass(slots=True)
class Eager:
    """Every tool, always."""

    testbed: ToolBoard

    def send(self, turn: Turn) -> Sent:
        everything = tuple(range(len(self.testbed.tokens)))
        return Sent(tools=everything, offered=frozenset(everything))


class NoTools:
    """None, ever: what is billed is the conversation alone, below which no choice of tools can come."""

    def send(self, turn: Turn) -> Sent:
        return Sent(tools=(), offered=frozenset())


@dataclass(slots=True)
class Naive:
    """What is relevant to this turn, and what the history calls (P13)."""

    called: dict[int, Places] = field(default_factory=dict)

    def send(self, turn: Turn) -> Sent:
        intent = turn.conversation.intents[turn.number]
        called = self.called.get(turn.conversation.number, frozenset())
        offered = called | frozenset(intent.relevant)
        self.called[turn.conversation.number] = called | (offered & intent.needed)
        return Sent(tools=tuple(sorted(offered)), offered=offered)


@dataclass(slots=True)
class Append:
    """What is relevant is added at the end; nothing ever leaves."""

    held: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def send(self, turn: Turn) -> Sent:
        held = self.held.get(turn.conversation.number, ())
        relevant = turn.conversation.intents[turn.number].relevant
        held += tuple(place for place in sorted(relevant) if place not in held)
        self.held[turn.conversation.number] = held
        return Sent(tools=held, offered=frozenset(held))


@dataclass(slots=True)
class CallTool:
    """One constant tool; definitions come into the history when they are first relevant."""

    shown: dict[int, Places] = field(default_factory=dict)

    def send(self, turn: Turn) -> Sent:
        shown = self.shown.get(turn.conversation.number, frozenset())
        relevant = turn.conversation.intents[turn.number].relevant
        self.shown[turn.conversation.number] = shown | frozenset(relevant)
        return Sent(
            tools=None,
            offered=self.shown[turn.conversation.number],
            injected=tuple(place for place in relevant if place not in shown),
        )


@dataclass(slots=True)
class Defer:
    """What is relevant to the first turn, and the others deferred (Anthropic).

    Whenever what is needed is not there the model searches, and finds what the router would have: that is taken for
    granted, and neither is measured.
    """

    loaded: dict[int, tuple[int, ...]] = field(default_factory=dict)
    known: dict[int, Places] = field(default_factory=dict)

    def send(self, turn: Turn) -> Sent:
        number, intent = turn.conversation.number, turn.conversation.intents[turn.number]
        loaded = self.loaded.setdefault(number, tuple(sorted(intent.relevant)))
        before = self.known.get(number, frozenset(loaded))
        waiting = [place for place in (*intent.relevant, *intent.likely) if place not in loaded]
        found = () if intent.needed <= before else tuple(waiting[:MOST_FOUND])
        self.known[number] = before | frozenset(found)
        return Sent(tools=loaded, offered=self.known[number], search=HOSTED_SEARCH, found=found)


@dataclass(slots=True)
class Refer:
    """The gateway's `defer`: all tools are deferred, and what is relevant is referred to behind the user's message.

    Whenever what is needed is not there the model searches, and finds the next best: that is taken for granted.
    """

    testbed: ToolBoard
    known: dict[int, Places] = field(default_factory=dict)

    def send(self, turn: Turn) -> Sent:
        number, intent = turn.conversation.number, turn.conversation.intents[turn.number]
        before = self.known.get(number, frozenset())
        referred = tuple(place for place in intent.relevant if place not in before)
        there = before.union(referred)
        waiting = [place for place in (*sorted(intent.needed), *intent.likely) if place not in there]
        found = () if intent.needed <= there else tuple(dict.fromkeys(waiting))[:MOST_FOUND]
        self.known[number] = there.union(found)
        return Sent(tools=(), offered=self.known[number], referred=referred, search=self.testbed.search, found=found)


@dataclass(slots=True)
class Known:
    """What the gateway keeps of a conversation."""

    held: Places | None = None
    called: Places = frozenset()
    last: float | None = None
    changed: int = 0
    account: CacheAccount = NOTHING_YET
    left: bool = False
    """Whether it turned out dearer, and has all tools since."""


class Sticky:
    """The rule on each turn, as the LLM gateway asks it: with the priors, revised by the conversation itself."""

    def __init__(self, testbed: ToolBoard, prices: CachePrices, growth: int) -> None:
        self._testbed = testbed
        self._prices = prices
        self._growth = growth
        self._known: dict[int, Known] = {}
        self._whole_at: float | None = None

    def send(self, turn: Turn) -> Sent:
        known = self._known.setdefault(turn.conversation.number, Known())
        places = self._places(self._moment(turn, known), known)
        intent = turn.conversation.intents[turn.number]
        before = turn.conversation.intents[turn.number - 1].relevant if turn.number else intent.relevant
        known.changed += not set(intent.relevant) <= known.called.union(before)
        known.held, known.last = frozenset(places), turn.at
        known.called |= known.held & intent.needed
        if len(places) == len(self._testbed.tokens):
            self._whole_at = turn.at
        return Sent(tools=places, offered=known.held)

    def _places(self, moment: Moment, known: Known) -> tuple[int, ...]:
        places = tuple(sorted(moment.all)) if known.left else verdict(moment, self._prices).places
        rest = self._prices.write * sum(moment.tokens[place] for place in moment.all.difference(places))
        account = self._billed(places, moment, known)
        if known.held is not None and not known.held.issuperset(places) and account.has_lost(rest):
            known.left, places = True, tuple(sorted(moment.all))
            account = self._billed(places, moment, known)
        known.account = account
        return places

    def _billed(self, places: tuple[int, ...], moment: Moment, known: Known) -> CacheAccount:
        now = bill_now(frozenset(places), moment, self._prices)
        return known.account.after(now, whole_bill_now(moment, self._prices))

    def _moment(self, turn: Turn, known: Known) -> Moment:
        intent = turn.conversation.intents[turn.number]
        traffic = Traffic(turns=1.0).revised(known.changed, turn.number)
        turns = traffic.remaining(turn.number)
        likely = dict.fromkeys((*sorted(known.held or ()), *intent.likely)) if turns > 1 else ()
        base = known.called.union(intent.relevant)
        return Moment(
            tokens=self._testbed.tokens,
            must=known.called,
            relevant=intent.relevant,
            likely=tuple(place for place in likely if place not in base),
            held=known.held,
            behind=SYSTEM + (ASKED + (turn.number - 1) * self._growth if turn.number else 0),
            ahead=self._growth if turn.number else ASKED,
            idle=_since(known.last, turn.at),
            whole_idle=_since(self._whole_at, turn.at),
            turns=turns,
            system=SYSTEM,
            news=traffic.news,
        )


class Learning:
    """The LLM gateway from its first request on: it takes the way that the conversations so far were cheapest by."""

    def __init__(
        self, testbed: ToolBoard, prices: CachePrices, cell: Cell, simulated: int, ways: Sequence[Way] = WAYS[:3]
    ) -> None:
        self._testbed = testbed
        self._ways = ways
        self._prices = prices
        self._simulated = simulated
        self._watch = Watch(testbed, cell, prices.ttl)
        self._seen = Seen()
        self._way: dict[int, Way] = {}
        self._by: Mapping[Way, Method] = {
            "whole": Eager(testbed),
            "tools": Sticky(testbed, prices, cell.growth),
            "call_tool": CallTool(),
            "defer": Refer(testbed),
        }

    def send(self, turn: Turn) -> Sent:
        """Of conversations from ``simulated`` on only the first turns are there, which would teach what is not so."""
        number = turn.conversation.number
        if turn.number == 0:
            self._way[number] = self._cheapest()
        turned = self._watch.turned(turn)
        if number < self._simulated:
            self._seen = self._seen.after(turned)
        return self._by[self._way[number]].send(turn)

    def _cheapest(self) -> Way:
        if self._seen.conversations < LEAST_SEEN:
            return "tools"
        total = sum(self._testbed.tokens)
        traffic = self._seen.traffic(SYSTEM, total)
        constant, search = self._testbed.constant, self._testbed.search
        return cheapest_way(traffic, self._prices, total, constant, self._ways, search=search)


class Watch:
    """Tells turns, in the order in which they come, as the gateway sees them."""

    def __init__(self, testbed: ToolBoard, cell: Cell, ttl: float) -> None:
        self._testbed = testbed
        self._cell = cell
        self._ttl = ttl
        self._last: float | None = None
        self._begun: dict[Places, float] = {}
        self._relevant: dict[int, tuple[Places, Places, Places]] = {}
        """By conversation: what was relevant to its last turn, to any, and what was called."""

    def turned(self, turn: Turn) -> Turned:
        conversation, first = turn.conversation, turn.number == 0
        intent = conversation.intents[turn.number]
        wanted = frozenset(intent.relevant)
        before, ever, called = self._relevant.get(conversation.number, (frozenset(),) * 3)
        used = called if first else called | conversation.intents[turn.number - 1].needed
        told = Turned(
            first=first,
            ahead=ASKED if first else self._cell.growth,
            wanted=self._tokens(wanted),
            added=self._tokens(wanted - ever),
            called=self._tokens(used - called),
            changed=not first and not wanted <= before | used,
            returned=first or self._cell.think < self._ttl,
            kept=first and self._within(self._last, turn.at),
            alike=first and self._within(self._begun.get(wanted), turn.at),
        )
        self._last = turn.at
        if first:
            self._begun[wanted] = turn.at
        self._relevant[conversation.number] = wanted, ever | wanted, used
        return told

    def _tokens(self, places: Places) -> int:
        return sum(self._testbed.tokens[place] for place in places)

    def _within(self, then: float | None, now: float) -> bool:
        return then is not None and now - then < self._ttl


def _since(then: float | None, now: float) -> float | None:
    return None if then is None else now - then
