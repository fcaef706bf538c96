"""A request to be filtered, with everything known about it before the selection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pegboard.gateways.llm.call_tool.plan import CallToolPlan
from pegboard.gateways.llm.formats.protocol import Codec, LlmRequest
from pegboard.gateways.llm.formats.tool_choice import KeptTools, may_be_narrowed
from pegboard.gateways.llm.selection.board_cache import Pick, ToolBoard
from pegboard.gateways.llm.selection.cache_aware_selection import SelectionTerms, prices_for
from pegboard.gateways.llm.selection.deferral import DeferralPlan
from pegboard.gateways.llm.selection.policy import NO_TOKENS, Filtered, Policy, any_fits
from pegboard.model import Choices, Decision, Tokens
from pegboard.protocols import Filter

MORE_BY_WORDS = 10
"""Extra tools selected when only words were matched, while the tools are not embedded yet."""
THE_SAME_FOR_ALL = "it is the same for all conversations, and definitions stay where they were first shown"


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionContext:
    """A request and its selection's inputs. ``among`` are the tools that may be selected; None means all of them."""

    codec: Codec
    request: LlmRequest
    policy: Policy
    board: ToolBoard
    terms: SelectionTerms
    among: Filter | None
    owner: str
    url_query: str

    def pick(self, decision: Decision) -> Pick:
        """The pick of a decision. A selection by words alone stays for the whole conversation, so the next best are
        added."""
        ranked = tuple(each.tool for each in decision.candidates)
        pick = self.board.pick(
            Choices(
                active=decision.active,
                ranked=ranked,
                query=decision.query,
                candidates=decision.candidates,
                comparable=bool(decision.encoder) and not decision.by_rank,
            )
        )
        return pick if self.board.is_embedded else pick.widened(MORE_BY_WORDS)

    def filtered(self, decision: Decision | None, kept: KeptTools, without: str) -> Filtered:
        """The result with these tools."""
        return Filtered(
            kept=kept,
            tokens_before=self.total,
            tokens_after=Tokens(sum(self.board.tokens[place] for place in kept.places)),
            decision=decision,
            without=without,
            board=self.board,
            barred=self.terms.barred,
        )

    def narrowed(self, kept: KeptTools, otherwise: Filtered) -> Filtered:
        """The result with all tools and these allowed, or ``otherwise`` if that cannot be expressed."""
        may = may_be_narrowed(self.request, kept.places)
        body = self.codec.narrow(self.request, kept.places) if may else None
        return otherwise if body is None else replace(otherwise, kept=kept, narrowed=body, tokens_after=self.total)

    def by_call_tool(self, plan: CallToolPlan, decision: Decision, without: str) -> Filtered:
        """The result with `call_tool` in place of all tools except those that are sent unchanged."""
        fixed = {place: tool.protected or "hosted" for place, tool in enumerate(self.request.tools) if tool.stays}
        why = dict.fromkeys(plan.disclosure.places, "shown") | fixed
        return replace(
            self.filtered(decision, KeptTools(why=dict(sorted(why.items()))), without),
            way="call_tool",
            call_tool_plan=plan,
            tokens_after=plan.tokens(sum(self.board.tokens[place] for place in fixed)),
            because=THE_SAME_FOR_ALL,
        )

    def by_reference(self, plan: DeferralPlan, decision: Decision, without: str) -> Filtered:
        """The result with deferred tools."""
        return replace(
            self.filtered(decision, plan.seen, without),
            way="defer",
            deferral=plan,
            tokens_after=plan.tokens,
            because=plan.reason,
        )

    @property
    def total(self) -> Tokens:
        return Tokens(sum(self.board.tokens))


def context_of(
    codec: Codec, request: LlmRequest, policy: Policy, board: ToolBoard, owner: str, url_query: str
) -> SelectionContext:
    """The context of a request. ``owner`` is the owner of its conversation, ``url_query`` the query of its URL."""
    terms = SelectionTerms(
        always=_named(request, policy.always),
        barred=_named(request, policy.never),
        when_none=policy.when_none,
        turns=policy.turns,
        prices=prices_for(policy.provider, request),
        may_leave="whole" in policy.ways,
    )
    return SelectionContext(
        codec=codec,
        request=request,
        policy=policy,
        board=board,
        terms=terms,
        among=_among(board, request.may_be_picked - terms.barred),
        owner=owner,
        url_query=url_query,
    )


def everything(request: LlmRequest, reason: str, tokens: Tokens = NO_TOKENS) -> Filtered:
    """The result with all tools, and the reason."""
    kept = KeptTools(why=dict.fromkeys(range(len(request.tools)), "left alone"))
    return Filtered(kept=kept, left_alone=reason, tokens_before=tokens, tokens_after=tokens)


def _among(board: ToolBoard, places: frozenset[int]) -> Filter | None:
    """The filter for these places; None if it is all of them."""
    excluded = frozenset(tool for place, tool in board.ids.items() if place not in places)
    return Filter(excluded=excluded) if excluded else None


def _named(request: LlmRequest, patterns: Sequence[str]) -> frozenset[int]:
    return frozenset(
        place for place, tool in enumerate(request.tools if patterns else ()) if any_fits(patterns, tool.name)
    )
