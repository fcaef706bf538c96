"""Which tools of a request stay, and how they reach the model.

Request ─► left alone? ─► board of its tools ─► route ─► which way? ─► obey, what is held, the rule ─► Filtered ─► codec
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pegboard.errors import EncoderError
from pegboard.gateways.llm.boards import Boards, Pick, Stock
from pegboard.gateways.llm.case import Case, case_of, everything
from pegboard.gateways.llm.codec import Codec, Request, Usage
from pegboard.gateways.llm.deferring import deferral
from pegboard.gateways.llm.learning import Learning
from pegboard.gateways.llm.obedience import left_alone, may_be_picked
from pegboard.gateways.llm.one_tool.plan import Prepared, closed, constant_of, prepared
from pegboard.gateways.llm.one_tool.showing import showing
from pegboard.gateways.llm.selection import Filtered, Policy
from pegboard.gateways.llm.settling import obeyed, settled, through_one, wanted
from pegboard.gateways.llm.sticking import Place, Sticking
from pegboard.model import Decision
from pegboard.retrieval import QUERIES
from pegboard.routing import Profile
from pegboard.seams import Clock
from pegboard.settings.llm import Way

MOST_SHOWN = 3
"""Definitions that are put before a message of the user's, where an agent has tools of its own for most of its work."""
RECENT_SECONDS = 30.0
MOST_RECENT = 256
"""Decisions about one array of tools that are remembered."""
BY_MEANING = frozenset({"summary_cosine", "definition_cosine", "hybrid", "two_layers"})
"""Rankers that ask an encoder."""


class Selector:
    """Picks the tools of one request after another. With a clock, what was decided lately is not decided again."""

    def __init__(self, boards: Boards, clock: Clock | None = None, learning: Learning | None = None) -> None:
        self._boards = boards
        self._clock = clock
        self._sticking = Sticking(clock, learning)

    async def select(
        self,
        codec: Codec,
        request: Request,
        policy: Policy,
        *,
        owner: str = "",
        patience: float | None = None,
        url_query: str = "",
        counting: bool = False,
    ) -> Filtered:
        """``owner`` says whose conversation the request is part of, ``url_query`` what its URL ends with. One that is
        ``counting`` asks what another one would be billed, and leaves nothing behind.

        Raises CatalogError or RequestNotUnderstood for tools that cannot be read, StillEmbedding for new ones after
        ``patience`` seconds, and EncoderError where nothing can be said without it; the request is then to pass.
        """
        reason, pickable = left_alone(request), may_be_picked(request)
        if not reason and not request.may_lose_some and {"call_tool", "defer"}.isdisjoint(policy.ways):
            reason = "a call is required, and no tool is known to end the run"
        if not reason and len(pickable) < policy.least_tools:
            reason = f"it has {len(pickable)} tools to pick from, and the least is {policy.least_tools}"
        if reason:
            return self._whole(everything(request, reason), request, policy, owner, counting)
        stock = await self._boards.of(codec, request.tools, policy.profile, patience)
        case = case_of(codec, request, policy, stock, owner, url_query)
        tokens = sum(stock.tokens[place] for place in pickable)
        if tokens < policy.least_tokens:
            reason = f"its tools to pick from have {tokens} tokens, and the least is {policy.least_tokens}"
            return self._whole(everything(request, reason, case.total), request, policy, owner, counting)
        if policy.ways == ("defer",):
            return await self._deferred(case, counting)
        return await self._picked(case, counting)

    def passed(self, request: Request, policy: Policy, owner: str) -> None:
        """The request goes out with all its tools, though nothing was picked; so its conversation has them (A4)."""
        way: Way = "tools" if "tools" in policy.ways_of(request) else "whole"
        if policy.sticky:
            self._sticking.passed(owner, request, policy.profile.query, way)

    def answered(self, filtered: Filtered, rounds: Sequence[frozenset[int]], used: Usage | None) -> None:
        """What became of a request that went out; ``rounds`` are the tools that it had, first and in each round."""
        if filtered.receipt is not None:
            self._sticking.answered(filtered.receipt, rounds, used)

    def _whole(self, found: Filtered, request: Request, policy: Policy, owner: str, counting: bool) -> Filtered:
        if not counting:
            self.passed(request, policy, owner)
        return found

    async def _picked(self, case: Case, counting: bool) -> Filtered:
        """By relevance; what is sent for it is the cheapest way's business."""
        request, policy, stock, terms = case.request, case.policy, case.stock, case.terms
        decision = await self._decided(case)
        pick, missing = case.pick(decision), without(policy.profile, decision, stock)
        wished = policy.ways_of(request)
        shut = closed(case.codec, request, case.url_query) if "call_tool" in wished else ""
        ways = tuple(way for way in wished if way != "call_tool" or not shut) or ("tools",)
        if not policy.sticky:
            if ways == ("call_tool",):
                return case.by_one_tool(await _plan(case, decision, pick, missing), decision, missing)
            kept = obeyed(request, terms, wanted(pick, terms))
            return replace(case.filtered(decision, kept, missing), no_one_tool=shut)
        place = await self._sticking.place(case.owner, request, stock, terms, policy.profile.query, case.among)
        way = await self._way(case, place, ways)
        found = settled(request, stock, terms, pick, place.known, way)
        if way == "call_tool":
            filtered = case.by_one_tool(await _plan(case, decision, pick, missing), decision, missing)
            found = through_one(found, place.known, terms.prices, filtered.tokens_after)
        else:
            way = "whole" if found.leaves else way
            filtered = case.filtered(decision, found.kept, missing)
            filtered = replace(filtered, verdict=found.verdict, way=way, no_one_tool=shut)
            if policy.allowed_tools and len(found.verdict.places) == len(request.tools):
                filtered = case.narrowed(found.base, filtered)
            if way == "whole" and filtered.narrowed is None:
                filtered = replace(filtered, left_alone=found.verdict.reason)
        if counting:
            return filtered
        kept_way = "call_tool" if shut and place.known.way == "call_tool" else way
        return replace(
            filtered,
            receipt=self._sticking.sent(place, request, filtered.sent(len(request.tools)), kept_way, found),
        )

    async def _way(self, case: Case, place: Place, ways: tuple[Way, ...]) -> Way:
        constant = 0
        if "call_tool" in ways and len(ways) > 1:
            constant = await constant_of(case.codec, case.request, case.stock, case.terms.barred, case.policy.profile)
        learns = case.policy.ways_of(case.request) == case.policy.ways
        return self._sticking.way(place, case.stock, ways, constant, learns=learns)

    async def _deferred(self, case: Case, counting: bool) -> Filtered:
        """With what the conversation's first request needed; the model searches for the others itself."""
        request, policy, stock, terms = case.request, case.policy, case.stock, case.terms
        place = await self._sticking.begun(case.owner, request, stock, terms, policy.profile.query, case.among)
        decision, missing, wishes = None, "", dict.fromkeys(terms.always, "always")
        if place.known.held is None:
            decision = await self._decided(case)
            missing = without(policy.profile, decision, stock)
            wishes |= dict.fromkeys(case.pick(decision).relevant, "relevant")
        else:
            wishes |= dict.fromkeys(place.known.held, "held")
        found = deferral(case.codec, request, stock, terms, wishes)
        if isinstance(found, str):
            kept = obeyed(request, terms, dict.fromkeys(range(len(request.tools)), "left alone"))
            return replace(case.filtered(decision, kept, missing), left_alone=found, way="whole")
        if not counting:
            self._sticking.sent(place, request, found.lasting, "defer")
        return replace(
            case.filtered(decision, found.loaded, missing),
            tokens_after=found.tokens,
            narrowed=found.body,
            way="defer",
            deferred=found.waiting,
            because=found.reason,
        )

    async def _decided(self, case: Case) -> Decision:
        """An agent's loop asks for the same at each of its steps: the decision of a moment ago still holds.

        Not for longer: what answered while an encoder was away is not to outlast that.
        """
        stock, turn, profile = case.stock, case.request.turn, case.policy.profile
        if self._clock is None:
            return await stock.board.route(turn, case.among)
        asked = QUERIES[profile.query](turn), case.among
        now = self._clock.monotonic()
        at, decision = stock.recent.get(asked, (0.0, None))
        if decision is None or now - at > RECENT_SECONDS:
            decision = await stock.board.route(turn, case.among)
            if without(profile, decision, stock):
                return decision  # the next one may be better
            stock.recent[asked] = now, decision
            while len(stock.recent) > MOST_RECENT:
                stock.recent.popitem(last=False)
        return decision


def without(profile: Profile, decision: Decision, stock: Stock) -> str:
    """What was missing where a profile goes by meaning and words alone decided. Raises EncoderError where nothing did.

    A turn without any text needs no encoder (P4).
    """
    if profile.ranker not in BY_MEANING or decision.encoder or not decision.query.strip():
        return ""
    if not any(candidate.parts for candidate in decision.candidates):
        raise EncoderError("No encoder answered.")
    return "picked by words alone: " + ("no encoder answered" if stock.is_embedded else "its tools are being embedded")


async def _plan(case: Case, decision: Decision, pick: Pick, missing: str) -> Prepared:
    """What the model is told where it calls all tools through one."""
    request, profile, barred = case.request, case.policy.profile, case.terms.barred
    decided = {} if missing else {decision.query: pick}
    most = MOST_SHOWN if any(tool.protected for tool in request.tools) else None
    shown = await showing(request, case.stock, profile.query, case.among, case.terms, decided, most=most)
    return await prepared(case.codec, request, case.stock, shown, barred=barred, budget=profile.pool)
