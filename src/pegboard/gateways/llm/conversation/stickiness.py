"""A request's place in its conversation: the tools held, what similar traffic taught, and the way its tools take."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pegboard.gateways.llm.conversation.history import Ask, ConversationHistory, Stage
from pegboard.gateways.llm.conversation.store import Conversations, ConversationThread, Receipt, thread_of
from pegboard.gateways.llm.conversation.turn_statistics import NOTHING, TurnStatistics, turned
from pegboard.gateways.llm.formats.protocol import LlmRequest, ToolChoice
from pegboard.gateways.llm.selection.board_cache import Pick, ToolBoard
from pegboard.gateways.llm.selection.cache_aware_selection import (
    CacheAwareSelection,
    ConversationState,
    RelevantTools,
    SelectionTerms,
    named,
    select_cache_aware,
)
from pegboard.habits import caller_of
from pegboard.prompt_cache import WAYS, Begun, Moment, cheapest_way
from pegboard.protocols import Clock, Filter
from pegboard.retrieval import QueryKind
from pegboard.settings.llm import Way
from pegboard.token_usage import TokenUsage

MOST_PICKS = 1024
"""Picks of earlier queries that are remembered per array of tools."""
JUST_NOW = 0.0
Places = frozenset[int]
LEAST_SEEN = 5
"""Conversations of a key that must have been seen before any way other than picking tools is chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationPlace:
    """A request's place. ``key`` is the key of its traffic; ``had_all``: this process sent the last request with all
    its tools."""

    thread: ConversationThread
    past: ConversationHistory
    terms: SelectionTerms
    key: str
    known: ConversationState
    had_all: bool = False


class Stickiness:
    """Tracks what conversations hold. Without a clock, only their own histories count and nothing is learnt."""

    def __init__(self, clock: Clock | None, statistics: TurnStatistics | None = None) -> None:
        self._conversations = None if clock is None else Conversations(clock)
        self._statistics = TurnStatistics(clock) if statistics is None and clock is not None else statistics

    async def place(
        self,
        owner: str,
        request: LlmRequest,
        board: ToolBoard,
        terms: SelectionTerms,
        kind: QueryKind,
        among: Filter | None,
    ) -> ConversationPlace:
        """The place of a request with this kind of query; ``among`` are the tools that may be picked.

        A history that another process served has no known times: its cache counts as warm, so that replicas agree.
        """
        place = self._remembered(owner, request, board, terms, kind)
        past, known = place.past, place.known
        if known.held is None and past.is_answered:
            again = await replayed(request, board, tuple(past.asks()), among, terms)
            known = replace(again, stage=known.stage, whole_idle=known.whole_idle, looping=known.looping)
        return replace(place, known=known)

    def _remembered(
        self, owner: str, request: LlmRequest, board: ToolBoard, terms: SelectionTerms, kind: QueryKind
    ) -> ConversationPlace:
        """The place according to what this process served."""
        past = ConversationHistory(request.turn, kind)
        thread = thread_of(owner, request, past)
        key, caller = "", caller_of(request.turn.habits)
        if self._statistics is not None:
            key = self._statistics.key(owner, request.model, past.system, board.digest, caller)
        known = ConversationState(stage=past.now)
        if self._conversations is not None:
            known = self._conversations.known(thread, known.stage, request, past.system)
        return ConversationPlace(
            thread=thread,
            past=past,
            terms=terms,
            key=key,
            known=replace(known, looping=past.looping),
            had_all=known.held is not None and len(known.held) == len(request.tools),
        )

    def way(
        self,
        place: ConversationPlace,
        board: ToolBoard,
        ways: Sequence[Way],
        constant: float,
        search: float = 0.0,
        *,
        learns: bool = True,
    ) -> Way:
        """The way of a request's tools. A conversation keeps its way; a new one takes the cheapest, based on other
        conversations of its key.

        For a conversation that another process began, the way is computed again from the same sums. While too few
        conversations were seen, tools are picked; if that is not one of the ways, the priors decide. The priors also
        decide if nothing ``learns``: beside an agent's own tools `call_tool` and `defer` have the smaller beginning,
        whatever others keep cached. A conversation that began with all its tools, as there was no time to compare, is
        billed from here on: what is cached of it counts for `whole`. ``constant`` is the number of tokens of
        `call_tool`, if that is one of the ways, and ``search`` those of the tool that searches for deferred ones.
        """
        if place.known.way is not None and place.known.way in ways:
            return place.known.way
        priced = [way for way in WAYS if way in ways]
        seen = None if self._statistics is None else self._statistics.seen(place.key)
        known = learns and seen is not None and seen.conversations >= LEAST_SEEN
        if not (known or not {"call_tool", "defer"}.isdisjoint(ways)):
            return "tools" if "tools" in ways else ways[0]
        if not known and "tools" in ways:
            return "tools"
        total = sum(board.tokens[each] for each in board.ids)
        traffic = (seen if known and seen else NOTHING).traffic(place.known.stage.system, total)
        traffic = replace(
            traffic, system=traffic.system + sum(board.tokens) - total
        )  # tools that stay are sent whatever the way
        return cheapest_way(
            traffic,
            place.terms.prices,
            total,
            constant,
            priced,
            search=search,
            way_back=place.terms.search,
            begun=_begun(place, board, total),
        )

    def sent(
        self,
        place: ConversationPlace,
        request: LlmRequest,
        places: Sequence[int],
        way: Way,
        found: CacheAwareSelection | None = None,
    ) -> Receipt | None:
        """Record a request that is sent with these tools in this way, and learn from it if the moment is known.

        The receipt is for `answered`.
        """
        known = place.known
        if found is not None:
            relevant = known.relevant.after(found.moment.relevant, named(request, request.called), known.held)
            self._learn(place, found.moment, relevant)
            known = replace(known, relevant=relevant, account=found.account)
        if self._conversations is None:
            return None
        self._conversations.sent(place.thread, known, request, place.past.system, places, way)
        if found is None:
            return None
        return Receipt(
            thread=place.thread,
            key=place.key,
            system=place.past.system,
            request=request,
            known=known,
            way=way,
            moment=found.moment,
            prices=place.terms.prices,
            expected=known.account.billed - place.known.account.billed,
        )

    def passed(self, owner: str, request: LlmRequest, kind: QueryKind, way: Way | None) -> None:
        """Record a request that is sent with all its tools, for whatever reason: its conversation holds them from now
        on."""
        if self._conversations is None or not request.tools:
            return
        past = ConversationHistory(request.turn, kind)
        thread = thread_of(owner, request, past)
        known = self._conversations.known(thread, past.now, request, past.system)
        self._conversations.sent(thread, known, request, past.system, range(len(request.tools)), way)

    def answered(
        self, receipt: Receipt, rounds: Sequence[Places], used: TokenUsage | None, tail: Sequence[int] = ()
    ) -> None:
        """Record the answer: the tools of the request, first and in each repetition, and the provider's token counts
        for all of it, if known."""
        if self._conversations is None:
            return
        if self._statistics is not None:
            for turn in receipt.turns(rounds):
                self._statistics.note(receipt.key, turn)
        known = replace(receipt.after(rounds, used), tail=tuple(tail))
        places = sorted(rounds[-1])
        self._conversations.sent(receipt.thread, known, receipt.request, receipt.system, places, receipt.way)

    def _learn(self, place: ConversationPlace, moment: Moment, relevant: RelevantTools) -> None:
        if self._statistics is None:
            return
        known, prices, first = place.known, place.terms.prices, not place.past.is_answered
        returned = known.idle is None or known.idle < prices.ttl
        turn = turned(moment, known.relevant, relevant, first=first, returned=returned)
        if first:
            kept, alike = self._statistics.neighbours(place.key, relevant.before, prices)
            turn = replace(turn, kept=kept, alike=alike)
        self._statistics.note(place.key, turn)


def _begun(place: ConversationPlace, board: ToolBoard, total: float) -> Begun | None:
    """The conversation so far if it had all its tools; else None. Those that stay count as ``behind``."""
    known = place.known
    if not place.had_all:
        return None
    prices = place.terms.prices
    return Begun(
        answers=known.stage.answers,
        behind=known.stage.behind + sum(board.tokens) - total,
        ahead=known.stage.ahead,
        warm=float(known.idle is not None and known.idle < prices.ttl),
    )


async def replayed(
    request: LlmRequest, board: ToolBoard, asks: Sequence[Ask], among: Filter | None, terms: SelectionTerms
) -> ConversationState:
    """The state after replaying these queries in order, as if each came right after the previous one: what is held, was
    relevant and billed, and whether all tools are sent because that was cheaper. Past tool choices and the bills of
    loop steps are unknown."""
    picks = await picks_of(board, asks, among)
    known = ConversationState(stage=Stage())
    for ask in asks:
        earlier = replace(request, turn=ask.turn, called=ask.stage.called, choice=ToolChoice())
        found = select_cache_aware(
            earlier, board, terms, picks[ask.query], replace(known, stage=ask.stage), known.way or "tools"
        )
        relevant = known.relevant.after(found.moment.relevant, named(request, ask.stage.called), known.held)
        known = replace(
            known,
            held=frozenset(found.kept.places),
            idle=JUST_NOW,
            relevant=relevant,
            way="whole" if found.leaves else known.way,
            account=found.account,
        )
    return replace(known, held=known.held or frozenset(), idle=JUST_NOW)


async def picks_of(board: ToolBoard, asks: Sequence[Ask], among: Filter | None) -> dict[str, Pick]:
    """The picks by query. Each query is routed only once (P25), unless it selected everything: that may have been for
    lack of an encoder."""
    known = {ask.query: board.picks.get((ask.query, among)) for ask in asks}
    new = {ask.query: ask.turn for ask in asks if known[ask.query] is None}
    routed = await asyncio.gather(*(board.routing.choices(turn, among) for turn in new.values()))
    picks = {query: pick for query, pick in known.items() if pick is not None}
    picks |= {query: board.pick(choices) for query, choices in zip(new, routed, strict=True)}
    remember(board, among, picks)
    return picks


def remember(board: ToolBoard, among: Filter | None, picks: Mapping[str, Pick]) -> None:
    for query, pick in telling(board, picks).items():
        board.picks[query, among] = pick
        board.picks.move_to_end((query, among))
    while len(board.picks) > MOST_PICKS:
        board.picks.popitem(last=False)


def telling(board: ToolBoard, picks: Mapping[str, Pick]) -> dict[str, Pick]:
    """The picks that left something out: one of everything may be for lack of an encoder."""
    return {query: pick for query, pick in picks.items() if len(pick.relevant) < len(board.ids)}
