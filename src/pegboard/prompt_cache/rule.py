"""Which tools to send with a request so that its conversation is billed least.

Relevant tools are always sent; beyond that, the expected bill decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from pegboard.cached_property import cached_property
from pegboard.prompt_cache.bill import Outlook, later, salvage, turn
from pegboard.prompt_cache.cache_prices import CachePrices

Kind = Literal["first", "kept", "grown", "shrunk", "whole"]
Places = frozenset[int]
REASONS: dict[Kind, str] = {
    "first": "first turn",
    "kept": "what was sent before is cached",
    "grown": "the intent needs more",
    "shrunk": "fewer tools cost less from here on",
    "whole": "all tools cost least",
}


@dataclass(frozen=True, kw_only=True)
class Moment:
    """What is known when a request arrives. Places are indexes of tools in the request.

    The fields from ``growth`` on are learnt from traffic, or the stated priors.
    """

    tokens: Sequence[int]
    """The tokens of each offered tool, as sent."""
    must: Places
    """Tools that stay in any case: hosted, forced, called, always available."""
    relevant: tuple[int, ...]
    """Wanted now, best first."""
    likely: tuple[int, ...]
    """The next best by relevance, candidates for over-provisioning."""
    held: Places | None
    """Sent on the previous turn; None on the first known turn."""
    behind: int
    """H: tokens behind the tools that may be cached now: the system text and the history before this turn."""
    ahead: int
    """Tokens of this turn that are new in any case."""
    idle: float | None
    """Seconds since the prefix with ``held`` was last sent. None: never, or unknown."""
    whole_idle: float | None
    """Seconds since any conversation with the same provider key and model sent all tools with this system text. None:
    never."""
    turns: float
    """Expected number of remaining turns of the conversation, including this one."""
    growth: float | None = None
    """Expected tokens that a later turn adds. None: as many as this turn."""
    returns: float = 0.9
    """The probability that the next turn comes within the cache's lifetime."""
    news: float = 0.15
    """The probability that a later turn needs a tool that is not relevant now."""
    system: int = 0
    """Tokens of ``behind`` that other conversations begin with, too; on the first turn this is all of ``behind``."""
    kept: float = 0.0
    """The probability that other conversations keep all tools with this system text cached, if none is known to."""
    search: int = 0
    """Tokens of the search tool, and of what else is sent in place of the tools that are left out."""

    @cached_property
    def base(self) -> Places:
        return self.must | frozenset(self.relevant)

    @cached_property
    def shares(self) -> Mapping[int, float]:
        """Each place's share of later demand: Zipf's law over the next best tools, not normalized."""
        order = (place for place in self.likely if place not in self.base)
        return {place: 1 / rank for rank, place in enumerate(order, 1)}

    @cached_property
    def outlook(self) -> Outlook:
        wanted = [self.tokens[place] for place in self.relevant]
        return Outlook(
            turns=self.turns,
            growth=self.ahead if self.growth is None else self.growth,
            returns=self.returns,
            addition=sum(wanted) / len(wanted) if wanted else 0.0,
        )

    @cached_property
    def total(self) -> int:
        """T: the tokens of all tools."""
        return sum(self.tokens)

    @cached_property
    def all(self) -> Places:
        return frozenset(range(len(self.tokens)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheDecision:
    """What to send: ``places`` are in request order (P18) and include ``must`` and ``relevant``.

    ``bill`` is the expected bill of this and later turns, in plain input tokens; ``whole_bill`` is the same if all
    tools had been sent each time.
    """

    places: tuple[int, ...]
    kind: Kind
    reason: str
    bill: float
    whole_bill: float


def verdict(moment: Moment, prices: CachePrices) -> CacheDecision:
    """The cheapest set that includes what is needed; among equals, the one that changes least."""
    bills = {places: expected_bill(places, moment, prices) for places in dict.fromkeys(_options(moment))}
    best = min(bills, key=bills.__getitem__)
    kind = _kind(best, moment)
    return CacheDecision(
        places=tuple(sorted(best)),
        kind=kind,
        reason=REASONS[kind],
        bill=bills[best],
        whole_bill=whole_bill(moment, prices),
    )


def expected_bill(places: Places, moment: Moment, prices: CachePrices) -> float:
    """The expected bill of sending these tools now and continuing with them."""
    if len(places) == len(moment.tokens):
        return _whole(moment, prices, sent=places == moment.held)
    prefix = tokens_sent(places, moment) + moment.behind
    later_on = later(prefix + moment.ahead, moment.outlook, prices, news=missing(places, moment))
    return bill_now(places, moment, prices) + later_on


def whole_bill(moment: Moment, prices: CachePrices) -> float:
    """The expected bill if all tools had been sent from the first turn on."""
    return _whole(moment, prices, sent=moment.held is not None)


def bill_now(places: Places, moment: Moment, prices: CachePrices) -> float:
    """The bill of this request with these tools."""
    if len(places) == len(moment.tokens):
        return _whole_now(moment, prices, sent=places == moment.held)
    warm = _warm(moment, prices) if places == moment.held else 0.0
    return turn(tokens_sent(places, moment) + moment.behind, moment.ahead, warm, prices)


def whole_bill_now(moment: Moment, prices: CachePrices) -> float:
    """The bill of this request if all tools had been sent from the first turn on."""
    return _whole_now(moment, prices, sent=moment.held is not None)


def call_tool_bill_now(tokens: float, moment: Moment, prices: CachePrices) -> float:
    """The bill of this request with `call_tool` and all disclosed definitions, ``tokens`` in total, in place of the
    tools."""
    warm = 0.0 if moment.held is None else _warm(moment, prices)
    return turn(tokens + moment.behind, moment.ahead, warm, prices)


def missing(places: Places, moment: Moment) -> float:
    """The probability that a later turn needs a tool beyond these.

    Prior: later needs fall on the remaining tools by Zipf's law over their relevance, as many tools per intent as now.
    """
    if moment.news == 0 or len(places) == len(moment.tokens):
        return 0.0
    held = sum(share for place, share in moment.shares.items() if place in places)
    covered = held / _harmonic(max(len(moment.tokens) - len(moment.base), 1))
    return moment.news * (1 - covered ** max(len(moment.relevant), 1))


@lru_cache(maxsize=4096)
def _harmonic(count: int) -> float:
    return sum(1 / rank for rank in range(1, count + 1))


def shared(moment: Moment, prices: CachePrices) -> float:
    """The probability that all tools with this system text are cached."""
    return 1.0 if moment.whole_idle is not None and moment.whole_idle < prices.ttl else moment.kept


def _options(moment: Moment) -> Iterator[Places]:
    """Sets worth comparing; the one that changes least comes first."""
    held = moment.held or frozenset()
    yield held | moment.base
    yield moment.base
    more = 1
    while more < 2 * len(moment.likely):
        provided = moment.base | frozenset(moment.likely[:more])
        yield provided
        yield held | provided
        more *= 2
    yield moment.all


def _whole(moment: Moment, prices: CachePrices, *, sent: bool) -> float:
    """The expected bill with all tools; ``sent``: this conversation sent them before."""
    left = moment.total + moment.behind + moment.ahead
    later_on = later(left, moment.outlook, prices, salvaged=_salvaged(moment, prices))
    return _whole_now(moment, prices, sent=sent) + later_on


def _whole_now(moment: Moment, prices: CachePrices, *, sent: bool) -> float:
    warm = _warm(moment, prices) if sent else 0.0
    return turn(moment.total + moment.behind, moment.ahead, warm, prices, _salvaged(moment, prices))


def _salvaged(moment: Moment, prices: CachePrices) -> float:
    """The saving from entries of other conversations, which end after the system text."""
    system = moment.behind if moment.held is None else moment.system
    return salvage(moment.total + system, shared(moment, prices), prices)


def tokens_sent(places: Places, moment: Moment) -> int:
    """The tokens of these tools and, if others are left out, of the search for them."""
    search = moment.search if len(places) < len(moment.tokens) else 0
    return sum(moment.tokens[place] for place in places) + search


def _warm(moment: Moment, prices: CachePrices) -> float:
    """The probability that what this conversation last sent is still cached."""
    return moment.returns if moment.idle is None else float(moment.idle < prices.ttl)


def _kind(places: Places, moment: Moment) -> Kind:
    if places == moment.held:
        return "kept"
    if len(places) == len(moment.tokens):
        return "whole"
    if moment.held is None:
        return "first"
    return "grown" if places > moment.held or not moment.base <= moment.held else "shrunk"
