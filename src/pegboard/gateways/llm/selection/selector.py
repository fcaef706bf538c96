"""Which tools of a request stay, and how they reach the model.

request ─► left alone? ─► board of its tools ─► route ─► which way? ─► tool choice, held tools, the rule ─► codec
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from pegboard.errors import EncoderError
from pegboard.gateways.llm.call_tool.disclosure import disclosure
from pegboard.gateways.llm.call_tool.plan import CallToolPlan, closed, constant_of, prepared
from pegboard.gateways.llm.conversation.stickiness import ConversationPlace, Stickiness
from pegboard.gateways.llm.conversation.turn_statistics import TurnStatistics
from pegboard.gateways.llm.formats.protocol import Codec, LlmRequest
from pegboard.gateways.llm.formats.registry import tool_search_of
from pegboard.gateways.llm.formats.tool_choice import NOTHING_RELEVANT, KeptTools, left_alone
from pegboard.gateways.llm.selection.board_cache import BoardCache, Pick, ToolBoard
from pegboard.gateways.llm.selection.cache_aware_selection import (
    named,
    select_cache_aware,
    through_call_tool,
    wanted,
    with_tool_choice,
)
from pegboard.gateways.llm.selection.deferral import NO_SEARCH, emulated_ways, not_deferred, not_emulated
from pegboard.gateways.llm.selection.deferral_inputs import deferral_of_request, search_of_request
from pegboard.gateways.llm.selection.policy import Filtered, Policy
from pegboard.gateways.llm.selection.selection_context import SelectionContext, context_of, everything
from pegboard.gateways.llm.tool_search.round_trip import lists_search, may_be_moved
from pegboard.model import Decision
from pegboard.protocols import Clock
from pegboard.retrieval import QUERIES
from pegboard.routing import Profile
from pegboard.settings.llm import Way
from pegboard.token_usage import TokenUsage

MOST_SHOWN = 3
"""Definitions shown before a user message if the agent's own tools do most of its work."""
RECENT_SECONDS = 30.0
MOST_RECENT = 256
"""Decisions that are remembered per array of tools."""
BY_MEANING = frozenset({"summary_cosine", "definition_cosine", "hybrid", "two_layers"})
"""Rankers that use an encoder."""


class Selector:
    """Selects the tools of requests. With a clock, recent decisions are reused."""

    def __init__(
        self, boards: BoardCache, clock: Clock | None = None, statistics: TurnStatistics | None = None
    ) -> None:
        self._boards = boards
        self._clock = clock
        self._stickiness = Stickiness(clock, statistics)

    async def select(
        self,
        codec: Codec,
        request: LlmRequest,
        policy: Policy,
        *,
        owner: str = "",
        patience: float | None = None,
        url_query: str = "",
        counting: bool = False,
    ) -> Filtered:
        """The selection for a request. ``owner`` is the owner of its conversation, ``url_query`` the query of its URL.
        A ``counting`` request asks what another one would be billed, and leaves no trace.

        Raises CatalogError or RequestNotUnderstood for unreadable tools, StillEmbedding for new ones after ``patience``
        seconds, and EncoderError if nothing can be selected without an encoder; the request should then pass.
        """
        reason, pickable = left_alone(request), request.may_be_picked
        if not reason and not request.may_lose_some and {"call_tool", "defer"}.isdisjoint(policy.ways_of(request)):
            reason = "a call is required, and no tool is known to end the run"
        if not reason and len(pickable) < policy.least_tools:
            reason = f"it has {len(pickable)} tools to select from, and the minimum is {policy.least_tools}"
        if reason:
            return self._whole(everything(request, reason), request, policy, owner, counting)
        board = await self._boards.of(codec, request.tools, policy.profile, patience)
        context = context_of(codec, request, policy, board, owner, url_query)
        tokens = sum(board.tokens[place] for place in pickable)
        if tokens < policy.least_tokens:
            reason = f"the tools to select from have {tokens} tokens, and the minimum is {policy.least_tokens}"
            return self._whole(everything(request, reason, context.total), request, policy, owner, counting)
        context = await _with_way_back(context)
        wished, barred, instead = _wished(context)
        return replace(await self._picked(context, counting, wished, barred), instead=instead)

    def passed(self, request: LlmRequest, policy: Policy, owner: str) -> None:
        """Record that a request is sent with all its tools without a selection, so that its conversation holds them
        (A4).

        Nothing was compared, so that no other way is ruled out for what comes after."""
        way: Way | None = "tools" if "tools" in policy.ways_of(request) else None
        if policy.sticky:
            self._stickiness.passed(owner, request, policy.profile.query, way)

    def answered(
        self, filtered: Filtered, rounds: Sequence[frozenset[int]], used: TokenUsage | None, tail: Sequence[int] = ()
    ) -> None:
        """Record the answer; ``rounds`` are the tools of the request, first and in each repetition, ``tail`` those that
        searches have found in the conversation."""
        if filtered.receipt is not None:
            self._stickiness.answered(filtered.receipt, rounds, used, tail or filtered.tail)

    def called(self, filtered: Filtered, request: LlmRequest, names: Collection[str]) -> None:
        """Learn from an answer which tools the request led to; an answer without a call ends the user's request."""
        board, decision = filtered.board, filtered.decision
        if board is None or board.routing.learner is None or decision is None:
            return
        places = (place for place, tool in enumerate(request.tools) if tool.name in names and place in board.ids)
        tools = [board.ids[place] for place in places]
        board.routing.learner.called(decision.habits, decision.query, tools, ended=not names)

    def _whole(self, found: Filtered, request: LlmRequest, policy: Policy, owner: str, counting: bool) -> Filtered:
        if not counting:
            self.passed(request, policy, owner)
        return found

    async def _picked(
        self, context: SelectionContext, counting: bool, wished: tuple[Way, ...], barred: str
    ) -> Filtered:
        """Select by relevance; the cheapest of the ``wished`` ways decides what is sent. ``barred`` says why it cannot
        be deferral, if so."""
        request, policy, board, terms = context.request, context.policy, context.board, context.terms
        decision = await self._decided(context)
        pick, missing = context.pick(decision), without(policy.profile, decision, board)
        shut = closed(context.codec, request, context.url_query) if "call_tool" in wished else ""
        refused = {"call_tool": shut, "defer": barred}
        if wished == ("defer",) and barred:
            kept = with_tool_choice(request, terms, dict.fromkeys(range(len(request.tools)), "left alone"))
            return replace(context.filtered(decision, kept, missing), left_alone=barred, way="whole")
        ways = tuple(way for way in wished if not refused.get(way)) or ("tools",)
        if not policy.sticky:
            if ways == ("call_tool",):
                return context.by_call_tool(await _plan(context, decision, pick, missing), decision, missing)
            if ways == ("defer",):
                return context.by_reference(
                    await deferral_of_request(context, decision, pick, missing), decision, missing
                )
            kept = with_tool_choice(request, terms, wanted(pick, terms))
            why = reached_nothing(policy.profile, kept, missing)
            return replace(context.filtered(decision, kept, missing), left_alone=why, no_call_tool=shut)
        place = await self._stickiness.place(context.owner, request, board, terms, policy.profile.query, context.among)
        way = await self._way(context, place, ways, learns=policy.ways_of(request) == policy.ways)
        found = select_cache_aware(request, board, terms, pick, place.known, way)
        if way == "call_tool":
            filtered = context.by_call_tool(await _plan(context, decision, pick, missing), decision, missing)
            found = through_call_tool(found, place.known, terms.prices, filtered.tokens_after)
        elif way == "defer":
            filtered = context.by_reference(
                await deferral_of_request(context, decision, pick, missing), decision, missing
            )
            found = through_call_tool(found, place.known, terms.prices, filtered.tokens_after)
        else:
            way = "whole" if found.leaves else way
            filtered = context.filtered(decision, found.kept, missing)
            why = reached_nothing(policy.profile, found.base, missing)
            filtered = replace(filtered, verdict=found.verdict, way=way, no_call_tool=shut, left_alone=why)
            filtered = replace(filtered, tail=_tail(request, place.known.tail))
            if policy.allowed_tools and len(found.verdict.places) == len(request.tools):
                filtered = context.narrowed(found.base, filtered)
            if way == "whole" and filtered.narrowed is None:
                filtered = replace(filtered, left_alone=why or found.verdict.reason)
        if counting:
            return filtered
        kept_way = place.known.way if place.known.way and refused.get(place.known.way) else way
        return replace(
            filtered,
            receipt=self._stickiness.sent(place, request, filtered.sent(len(request.tools)), kept_way, found),
        )

    async def _way(
        self, context: SelectionContext, place: ConversationPlace, ways: tuple[Way, ...], *, learns: bool
    ) -> Way:
        constant, search = 0, 0
        if "call_tool" in ways and len(ways) > 1:
            constant = await constant_of(
                context.codec, context.request, context.board, context.terms.barred, context.policy.profile
            )
        if "defer" in ways and len(ways) > 1:
            search = (await search_of_request(context)).tokens
        return self._stickiness.way(place, context.board, ways, constant, search, learns=learns)

    async def _decided(self, context: SelectionContext) -> Decision:
        """The decision. An agent loop has the same query at each step: a recent decision still holds.

        Only briefly: a decision made while an encoder was unavailable should not outlast that.
        """
        board, turn, profile = context.board, context.request.turn, context.policy.profile
        if self._clock is None:
            return await board.routing.route(turn, context.among)
        whose = "" if board.routing.learner is None else turn.habits
        asked = whose, (QUERIES[profile.query](turn), context.among)
        now = self._clock.monotonic()
        at, decision = board.recent.get(asked, (0.0, None))
        if decision is None or now - at > RECENT_SECONDS:
            decision = await board.routing.route(turn, context.among)
            if without(profile, decision, board):
                return decision  # the next one may be better
            board.recent[asked] = now, decision
            board.recent.move_to_end(asked)
            while len(board.recent) > MOST_RECENT or now - next(iter(board.recent.values()))[0] > RECENT_SECONDS:
                board.recent.popitem(last=False)
        return decision


def _tail(request: LlmRequest, known: Sequence[int]) -> tuple[int, ...]:
    """The places of tools that searches have found, those last whose results this request brings."""
    found = sorted(named(request, request.found) - {*known})
    return (*known, *(place for place in found if may_be_moved(request.tools[place])))


async def _with_way_back(context: SelectionContext) -> SelectionContext:
    """The context with the tokens of the search tool, if the request gets one where tools are left out."""
    format_ = tool_search_of(context.codec)
    if not context.policy.way_back or format_ is None or not lists_search(context.request):
        return context
    if format_.closed(context.request, context.url_query):
        return context
    search = await search_of_request(context)
    return replace(context, terms=replace(context.terms, search=search.tokens))


def _wished(context: SelectionContext) -> tuple[tuple[Way, ...], str, str]:
    """The ways that may be taken; why not by deferral, if so; and why another way emulates it, if one does."""
    codec, request, terms, query = context.codec, context.request, context.terms, context.url_query
    wished = context.policy.ways_of(request)
    barred = not_deferred(codec, request, terms, query) if "defer" in wished else ""
    if barred != NO_SEARCH:
        return wished, barred, ""
    if refused := not_emulated(codec, request, terms, query):
        return wished, f"{barred}, and {refused}", ""
    return emulated_ways(codec, request, wished), "", barred


def reached_nothing(profile: Profile, kept: KeptTools, missing: str = "") -> str:
    """The reason if all tools are kept because none was selected; else empty. ``missing`` says what could not
    select."""
    if NOTHING_RELEVANT not in kept.why.values():
        return ""
    reached = "nothing is relevant" if profile.threshold is None else f"nothing reached {profile.threshold:g}"
    return f"{missing or reached}; all kept"


def without(profile: Profile, decision: Decision, board: ToolBoard) -> str:
    """What was missing if the profile ranks by meaning but only words decided. Raises EncoderError if nothing decided.

    A turn without text needs no encoder (P4).
    """
    if profile.ranker not in BY_MEANING or decision.encoder or not decision.query.strip():
        return ""
    if not any(candidate.parts for candidate in decision.candidates):
        raise EncoderError("No encoder answered.")
    return "selected by words alone: " + (
        "no encoder answered" if board.is_embedded else "its tools are being embedded"
    )


async def _plan(context: SelectionContext, decision: Decision, pick: Pick, missing: str) -> CallToolPlan:
    """What the model is shown if it calls all tools through `call_tool`."""
    request, profile, barred = context.request, context.policy.profile, context.terms.barred
    decided = {} if missing else {decision.query: pick}
    most = MOST_SHOWN if any(tool.protected for tool in request.tools) else None
    shown = await disclosure(request, context.board, profile.query, context.among, context.terms, decided, most=most)
    return await prepared(context.codec, request, context.board, shown, barred=barred, budget=profile.pool)
