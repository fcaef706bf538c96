"""Which of a request's tools to keep, given its conversation: those that are needed, and those that cost less to
keep."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from pegboard.gateways.llm.conversation.history import Stage
from pegboard.gateways.llm.formats.json_reader import value_of
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.formats.tool_choice import NOTHING_RELEVANT, KeptTools, WhenNone, apply_tool_choice
from pegboard.gateways.llm.selection.board_cache import Pick, ToolBoard
from pegboard.prompt_cache import (
    NOTHING_YET,
    CacheAccount,
    CacheDecision,
    CachePrices,
    Moment,
    Traffic,
    known_prices,
    prices_of,
    verdict,
)
from pegboard.prompt_cache.rule import bill_now, call_tool_bill_now, expected_bill, whole_bill, whole_bill_now
from pegboard.settings.llm import Format, Way

Places = frozenset[int]
MARK = b'"cache_control"'
AN_HOUR = re.compile(rb'"ttl"\s*:\s*"1h"')
UNCACHED = CachePrices()
ALONE = "left alone: sending all tools every time costs least"
DEARER = "left alone from now on: with all tools this conversation would have cost less so far"
CHOSEN = frozenset({"relevant", "held", NOTHING_RELEVANT, "needed"})
"""Reasons to keep a tool that neither the request nor the policy names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionTerms:
    """What applies to every request of a conversation.

    ``always`` are places that stay and ``barred`` places that are dropped whatever is relevant; a conversation is
    expected to have ``turns`` turns. A conversation that proves dearer than with all tools ``may_leave`` its way and
    send them. ``search`` are the tokens of the search tool that is offered if tools are left out.
    """

    always: frozenset[int]
    barred: frozenset[int]
    when_none: WhenNone
    turns: float
    prices: CachePrices
    may_leave: bool = False
    search: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RelevantTools:
    """The tools that were relevant in a conversation: to the previous request (``before``) and to ``any`` request; the
    ``called`` ones; and the number of requests that ``changed`` the set: they needed a tool that was neither relevant
    to the previous request nor called, or called one that they did not have."""

    before: Places = frozenset()
    any: Places = frozenset()
    called: Places = frozenset()
    changed: int = 0

    def after(self, relevant: Iterable[int], called: Places, held: Places | None = None) -> RelevantTools:
        """After one more request with these relevant tools; ``called`` were called before it, and the previous request
        was sent with ``held``."""
        wanted = frozenset(relevant)
        came = held is not None and not called <= held | self.called
        changed = came or (bool(self.any) and not wanted <= self.before | called)
        return RelevantTools(before=wanted, any=self.any | wanted, called=called, changed=self.changed + changed)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationState:
    """What is known of a conversation when a request arrives.

    ``held`` are the places of the tools of the previous request, ``idle`` the seconds since this prefix was last sent,
    and ``whole_idle`` the seconds since all tools were; None if unknown. ``looping``: the request is another step of
    the previous one. ``way`` is the conversation's way, if known, and ``account`` its bill. ``tail`` are
    the places of the tools that searches have found, in that order.
    """

    stage: Stage
    held: frozenset[int] | None = None
    idle: float | None = None
    whole_idle: float | None = None
    looping: bool = False
    relevant: RelevantTools = RelevantTools()
    way: Way | None = None
    account: CacheAccount = NOTHING_YET
    tail: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheAwareSelection:
    """The tools to keep, the ``base`` that would be kept without a cache, and the rule's decision for that moment.

    ``account`` includes this request; ``leaves`` says that the conversation proved dearer and sends all tools from now
    on.
    """

    kept: KeptTools
    base: KeptTools
    verdict: CacheDecision
    moment: Moment
    account: CacheAccount
    leaves: bool = False


def wanted(pick: Pick, terms: SelectionTerms) -> dict[int, str]:
    """The tools that the router and the policy want, with the reasons."""
    return dict.fromkeys(pick.relevant, "relevant") | dict.fromkeys(terms.always, "always")


def with_tool_choice(request: LlmRequest, terms: SelectionTerms, wanted: Mapping[int, str]) -> KeptTools:
    return apply_tool_choice(request, wanted, barred=terms.barred, when_none=terms.when_none)


def select_cache_aware(
    request: LlmRequest,
    board: ToolBoard,
    terms: SelectionTerms,
    pick: Pick,
    known: ConversationState,
    way: Way = "tools",
) -> CacheAwareSelection:
    """The cache-aware selection. If nothing is wanted, the held tools are kept: a follow-up continues with them
    (P3)."""
    wishes = wanted(pick, terms) or dict.fromkeys(known.held or (), "held")
    base = with_tool_choice(request, terms, wishes)
    moment = moment_of(board, terms, pick, known, base)
    whole_now = whole_bill_now(moment, terms.prices)
    if way == "whole":
        found = _left_alone(moment, terms.prices, ALONE)
        account = known.account.after(bill_now(moment.all, moment, terms.prices), whole_now)
        return CacheAwareSelection(kept=_whole(request), base=base, verdict=found, moment=moment, account=account)
    step = _another_step(moment, terms.prices) if known.looping else None
    found = step or verdict(moment, terms.prices)
    more = dict.fromkeys(found.places, found.kind)
    kept = with_tool_choice(request, terms, more | wishes) if len(found.places) > len(base.why) else base
    account = known.account.after(bill_now(frozenset(kept.places), moment, terms.prices), whole_now)
    comes = known.held is not None and not known.held.issuperset(kept.places)
    if way == "tools" and terms.may_leave and comes and account.has_lost(_rest(kept, moment, terms.prices)):
        found = _left_alone(moment, terms.prices, DEARER)
        account = known.account.after(bill_now(moment.all, moment, terms.prices), whole_now)
        return CacheAwareSelection(
            kept=_whole(request), base=base, verdict=found, moment=moment, account=account, leaves=True
        )
    return CacheAwareSelection(kept=kept, base=base, verdict=found, moment=moment, account=account)


def _rest(kept: KeptTools, moment: Moment, prices: CachePrices) -> float:
    """The cost of writing the tools that are left out."""
    return prices.write * (moment.total - sum(moment.tokens[place] for place in kept.places))


def through_call_tool(
    found: CacheAwareSelection, known: ConversationState, prices: CachePrices, tokens: int
) -> CacheAwareSelection:
    """The same selection if the request has `call_tool`, with ``tokens`` in total, in place of its tools."""
    now = call_tool_bill_now(tokens, found.moment, prices)
    return replace(found, account=known.account.after(now, whole_bill_now(found.moment, prices)))


def moment_of(board: ToolBoard, terms: SelectionTerms, pick: Pick, known: ConversationState, base: KeptTools) -> Moment:
    """The moment of a request. Tools that were held are the likeliest to be needed again; on the last turn nothing more
    is.

    The length of a conversation and how often it brings news are taken from the conversation and the priors alone, so
    that replicas agree: learnt averages make it no cheaper (docs/prompt-cache.md).
    """
    answers = known.stage.answers
    traffic = Traffic(turns=terms.turns).revised(known.relevant.changed, answers)
    chosen = dict.fromkeys(place for place in pick.relevant if base.why.get(place) in CHOSEN)
    chosen |= dict.fromkeys(place for place, why in base.why.items() if why in CHOSEN)
    turns = max(terms.turns, traffic.remaining(answers))
    likely = dict.fromkeys((*sorted(known.held or ()), *pick.likely)) if turns > 1 else ()
    return Moment(
        tokens=board.tokens,
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
        search=terms.search,
    )


def named(request: LlmRequest, names: Container[str]) -> Places:
    """The places of the tools with these names."""
    return frozenset(place for place, tool in enumerate(request.tools) if tool.name in names)


def _whole(request: LlmRequest) -> KeptTools:
    return KeptTools(why=dict.fromkeys(range(len(request.tools)), "left alone"))


def _left_alone(moment: Moment, prices: CachePrices, reason: str) -> CacheDecision:
    bill = whole_bill(moment, prices)
    return CacheDecision(
        places=tuple(range(len(moment.tokens))), kind="whole", reason=reason, bill=bill, whole_bill=bill
    )


def _another_step(moment: Moment, prices: CachePrices) -> CacheDecision | None:
    """Within an agent loop nothing is recomputed while the needed tools are there: the prefix was just sent."""
    if moment.held is None or not moment.base <= moment.held:
        return None
    return CacheDecision(
        places=tuple(sorted(moment.held)),
        kind="kept",
        reason="another step of the same turn",
        bill=expected_bill(moment.held, moment, prices),
        whole_bill=whole_bill(moment, prices),
    )


LONGEST_MODEL = 256
"""Characters of a model's name up to which its prices are remembered: callers choose it."""


def prices_for(provider: Format, request: LlmRequest) -> CachePrices:
    """The cache prices of a request. If the provider only caches marked prefixes, a request without a mark has no
    cache."""
    marked = MARK in request.text
    if marked:
        lasting = AN_HOUR.search(request.text) is not None
    else:
        lasting = value_of(request.text, request.fields, "prompt_cache_retention") == "24h"
    known = _prices if len(request.model) <= LONGEST_MODEL else _prices.__wrapped__
    prices = known(provider, request.model, lasting)
    return prices if marked or prices.automatic else UNCACHED


@lru_cache(maxsize=1024)
def _prices(provider: Format, model: str, lasting: bool) -> CachePrices:
    return prices_of(known_prices(), provider, model, lasting=lasting)
