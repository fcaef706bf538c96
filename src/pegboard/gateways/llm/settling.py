"""What is kept of a request's tools in its conversation: what is wanted, and what costs less to keep (DESIGN §2.4)."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from pegboard.gateways.llm.boards import Pick, Stock
from pegboard.gateways.llm.codec import Request
from pegboard.gateways.llm.obedience import Kept, WhenNone, obey
from pegboard.gateways.llm.past import Stage
from pegboard.gateways.llm.reading import value_of
from pegboard.prompt_cache import (
    NOTHING_YET,
    Account,
    CachePrices,
    Moment,
    Traffic,
    Verdict,
    known_prices,
    prices_of,
    verdict,
)
from pegboard.prompt_cache.rule import bill_now, expected_bill, through_one_now, whole_bill, whole_bill_now
from pegboard.settings.llm import Format, Way

Places = frozenset[int]
MARK = b'"cache_control"'
AN_HOUR = re.compile(rb'"ttl"\s*:\s*"1h"')
UNCACHED = CachePrices()
ALONE = "left alone: nothing that is sent here would cost less than all tools, always"
DEARER = "left alone from here on: with all tools this conversation would have cost less so far"
CHOSEN = frozenset({"relevant", "held", "nothing is relevant", "needed"})
"""Why a tool is kept that neither the request nor the policy asks for by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What holds for every request of a conversation.

    ``always`` stay and ``barred`` go, whatever is relevant; a conversation is expected to have so many ``turns``. One
    that turned out dearer than with all tools ``may_leave`` its way for them.
    """

    always: frozenset[int]
    barred: frozenset[int]
    when_none: WhenNone
    turns: float
    prices: CachePrices
    may_leave: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Relevant:
    """Which tools were relevant in a conversation so far: to the request before, and to ``any``; which were ``called``;
    and how many requests ``changed`` it, wanting what was neither relevant to the one before nor called, or calling
    what they did not have."""

    before: Places = frozenset()
    any: Places = frozenset()
    called: Places = frozenset()
    changed: int = 0

    def after(self, relevant: Iterable[int], called: Places, held: Places | None = None) -> Relevant:
        """With a request more, for which these are relevant; ``called`` are those that were called before it, and
        ``held`` what the one before was sent with."""
        wanted = frozenset(relevant)
        came = held is not None and not called <= held | self.called
        changed = came or (bool(self.any) and not wanted <= self.before | called)
        return Relevant(before=wanted, any=self.any | wanted, called=called, changed=self.changed + changed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of a conversation when a request comes.

    ``held`` are the places of the tools that the request before was sent with, ``idle`` the seconds since this prefix
    was last sent, and ``whole_idle`` those since all tools were; None where nobody knows. ``looping``: it is another
    step of the request before. ``way`` is the one that the conversation has taken, where that is known, and ``account``
    what it was billed.
    """

    stage: Stage
    held: frozenset[int] | None = None
    idle: float | None = None
    whole_idle: float | None = None
    looping: bool = False
    relevant: Relevant = Relevant()
    way: Way | None = None
    account: Account = NOTHING_YET


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What is kept, ``base`` what would be if there were no cache, and the rule's verdict on that moment.

    ``account`` has this request in it; ``leaves`` says that its conversation turned out dearer, and has all tools from
    here on.
    """

    kept: Kept
    base: Kept
    verdict: Verdict
    moment: Moment
    account: Account
    leaves: bool = False


def wanted(pick: Pick, terms: Terms) -> dict[int, str]:
    """What the router and the policy want, and why."""
    return dict.fromkeys(pick.relevant, "relevant") | dict.fromkeys(terms.always, "always")


def obeyed(request: Request, terms: Terms, wanted: Mapping[int, str]) -> Kept:
    return obey(request, wanted, barred=terms.barred, when_none=terms.when_none)


def settled(request: Request, stock: Stock, terms: Terms, pick: Pick, known: Known, way: Way = "tools") -> Settled:
    """Where nothing is wanted, what is held is: a follow-up goes on with it (P3)."""
    wishes = wanted(pick, terms) or dict.fromkeys(known.held or (), "held")
    base = obeyed(request, terms, wishes)
    moment = moment_of(stock, terms, pick, known, base)
    whole_now = whole_bill_now(moment, terms.prices)
    if way == "whole":
        found = _left_alone(moment, terms.prices, ALONE)
        account = known.account.after(bill_now(moment.all, moment, terms.prices), whole_now)
        return Settled(kept=_whole(request), base=base, verdict=found, moment=moment, account=account)
    step = _another_step(moment, terms.prices) if known.looping else None
    found = step or verdict(moment, terms.prices)
    more = dict.fromkeys(found.places, found.kind)
    kept = obeyed(request, terms, more | wishes) if len(found.places) > len(base.why) else base
    account = known.account.after(bill_now(frozenset(kept.places), moment, terms.prices), whole_now)
    comes = known.held is not None and not known.held.issuperset(kept.places)
    if way == "tools" and terms.may_leave and comes and account.has_lost(_rest(kept, moment, terms.prices)):
        found = _left_alone(moment, terms.prices, DEARER)
        account = known.account.after(bill_now(moment.all, moment, terms.prices), whole_now)
        return Settled(kept=_whole(request), base=base, verdict=found, moment=moment, account=account, leaves=True)
    return Settled(kept=kept, base=base, verdict=found, moment=moment, account=account)


def _rest(kept: Kept, moment: Moment, prices: CachePrices) -> float:
    """What it costs to write the tools that are left out."""
    return prices.write * (moment.total - sum(moment.tokens[place] for place in kept.places))


def through_one(found: Settled, known: Known, prices: CachePrices, tokens: int) -> Settled:
    """The same where the request has `call_tool`, and so many ``tokens`` in place of all tools."""
    now = through_one_now(tokens, found.moment, prices)
    return replace(found, account=known.account.after(now, whole_bill_now(found.moment, prices)))


def moment_of(stock: Stock, terms: Terms, pick: Pick, known: Known, base: Kept) -> Moment:
    """What was wanted before is the likeliest to be wanted again. On its last turn nothing more will be wanted.

    How long a conversation is to last, and how often it brings news, is taken from itself and the priors alone, so that
    replicas agree: learnt means make it no cheaper (docs/prompt-cache.md).
    """
    answers = known.stage.answers
    traffic = Traffic(turns=terms.turns).revised(known.relevant.changed, answers)
    chosen = dict.fromkeys(place for place in pick.relevant if base.why.get(place) in CHOSEN)
    chosen |= dict.fromkeys(place for place, why in base.why.items() if why in CHOSEN)
    turns = max(terms.turns, traffic.remaining(answers))
    likely = dict.fromkeys((*sorted(known.held or ()), *pick.likely)) if turns > 1 else ()
    return Moment(
        tokens=stock.tokens,
        must=frozenset(base.why.keys() - chosen.keys()),
        relevant=tuple(chosen),
        likely=tuple(place for place in likely if place not in base.why),
        held=known.held,
        behind=known.stage.behind,
        ahead=known.stage.ahead,
        idle=known.idle,
        whole_idle=known.whole_idle,
        turns=turns,
        news=traffic.news,
        system=known.stage.system,
    )


def named(request: Request, names: Container[str]) -> Places:
    """The places of the tools with these names."""
    return frozenset(place for place, tool in enumerate(request.tools) if tool.name in names)


def _whole(request: Request) -> Kept:
    return Kept(why=dict.fromkeys(range(len(request.tools)), "left alone"))


def _left_alone(moment: Moment, prices: CachePrices, reason: str) -> Verdict:
    bill = whole_bill(moment, prices)
    return Verdict(places=tuple(range(len(moment.tokens))), kind="whole", reason=reason, bill=bill, whole_bill=bill)


def _another_step(moment: Moment, prices: CachePrices) -> Verdict | None:
    """Within an agent's loop nothing is weighed anew, as long as what is wanted is there: the prefix was just sent."""
    if moment.held is None or not moment.base <= moment.held:
        return None
    return Verdict(
        places=tuple(sorted(moment.held)),
        kind="kept",
        reason="another step of the same turn",
        bill=expected_bill(moment.held, moment, prices),
        whole_bill=whole_bill(moment, prices),
    )


def prices_for(provider: Format, request: Request) -> CachePrices:
    """Where a provider caches only what is marked, a request without a mark has no cache."""
    marked = MARK in request.text
    if marked:
        lasting = AN_HOUR.search(request.text) is not None
    else:
        lasting = value_of(request.text, request.fields, "prompt_cache_retention") == "24h"
    prices = _prices(provider, request.model, lasting)
    return prices if marked or prices.automatic else UNCACHED


@lru_cache(maxsize=1024)
def _prices(provider: Format, model: str, lasting: bool) -> CachePrices:
    return prices_of(known_prices(), provider, model, lasting=lasting)
