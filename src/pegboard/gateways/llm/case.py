"""One request that is to be filtered, with all that is known of it before anything is picked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pegboard.gateways.llm.boards import Pick, Stock
from pegboard.gateways.llm.codec import Codec, Request
from pegboard.gateways.llm.obedience import Kept, may_be_narrowed, may_be_picked
from pegboard.gateways.llm.one_tool.plan import Prepared
from pegboard.gateways.llm.selection import NO_TOKENS, Filtered, Policy, any_fits
from pegboard.gateways.llm.settling import Terms, prices_for
from pegboard.model import Choices, Decision, Tokens
from pegboard.seams import Filter

MORE_BY_WORDS = 10
"""Tools that are picked beside what words have found, while nothing is known of their meaning."""
THE_SAME_FOR_ALL = "it is the same for all, and definitions stay where they were first shown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """``among`` are the tools that may be picked, where that is not all of them."""

    codec: Codec
    request: Request
    policy: Policy
    stock: Stock
    terms: Terms
    among: Filter | None
    owner: str
    url_query: str

    def pick(self, decision: Decision) -> Pick:
        """What words alone have picked stays for as long as the conversation: the next best are picked with it."""
        ranked = tuple(each.tool for each in decision.candidates)
        pick = self.stock.pick(Choices(active=decision.active, ranked=ranked))
        return pick if self.stock.is_embedded else pick.widened(MORE_BY_WORDS)

    def filtered(self, decision: Decision | None, kept: Kept, without: str) -> Filtered:
        """With these tools."""
        return Filtered(
            kept=kept,
            tokens_before=self.total,
            tokens_after=Tokens(sum(self.stock.tokens[place] for place in kept.places)),
            decision=decision,
            without=without,
            stock=self.stock,
            barred=self.terms.barred,
        )

    def narrowed(self, kept: Kept, otherwise: Filtered) -> Filtered:
        """With all tools, of which these may be called; ``otherwise`` where that cannot be said."""
        may = may_be_narrowed(self.request, kept.places)
        body = self.codec.narrow(self.request, kept.places) if may else None
        return otherwise if body is None else replace(otherwise, kept=kept, narrowed=body, tokens_after=self.total)

    def by_one_tool(self, plan: Prepared, decision: Decision, without: str) -> Filtered:
        """With `call_tool` in place of them all, but those that are sent as they came."""
        fixed = {place: tool.protected or "hosted" for place, tool in enumerate(self.request.tools) if tool.stays}
        why = dict.fromkeys(plan.showing.places, "shown") | fixed
        return replace(
            self.filtered(decision, Kept(why=dict(sorted(why.items()))), without),
            way="call_tool",
            one_tool=plan,
            tokens_after=plan.tokens(sum(self.stock.tokens[place] for place in fixed)),
            because=THE_SAME_FOR_ALL,
        )

    @property
    def total(self) -> Tokens:
        return Tokens(sum(self.stock.tokens))


def case_of(codec: Codec, request: Request, policy: Policy, stock: Stock, owner: str, url_query: str) -> Case:
    """``owner`` says whose conversation it is part of, ``url_query`` what its URL ends with."""
    terms = Terms(
        always=_named(request, policy.always),
        barred=_named(request, policy.never),
        when_none=policy.when_none,
        turns=policy.turns,
        prices=prices_for(policy.provider, request),
        may_leave="whole" in policy.ways,
    )
    return Case(
        codec=codec,
        request=request,
        policy=policy,
        stock=stock,
        terms=terms,
        among=_among(stock, may_be_picked(request) - terms.barred),
        owner=owner,
        url_query=url_query,
    )


def everything(request: Request, reason: str, tokens: Tokens = NO_TOKENS) -> Filtered:
    """All tools, for a reason."""
    kept = Kept(why=dict.fromkeys(range(len(request.tools)), "left alone"))
    return Filtered(kept=kept, left_alone=reason, tokens_before=tokens, tokens_after=tokens)


def _among(stock: Stock, places: frozenset[int]) -> Filter | None:
    """The filter that lets only these through; none where it is all of them."""
    excluded = frozenset(tool for place, tool in stock.ids.items() if place not in places)
    return Filter(excluded=excluded) if excluded else None


def _named(request: Request, patterns: Sequence[str]) -> frozenset[int]:
    return frozenset(
        place for place, tool in enumerate(request.tools if patterns else ()) if any_fits(patterns, tool.name)
    )
