"""Which tools of a conversation are in the prompt, where the others wait at the provider to be searched for (P21).

What the prompt begins with stays the same bytes from the first turn on: those tools that the first request needed, and
what the requests themselves ask for. What a search finds stays deferred, as the history refers to it; so nothing is
loaded for relevance later. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pegboard.gateways.llm.boards import Stock
from pegboard.gateways.llm.codec import Codec, Request
from pegboard.gateways.llm.obedience import Kept, may_be_picked, must_stay
from pegboard.gateways.llm.settling import Terms
from pegboard.model import Tokens

LEAST = 10
"""Of fewer tools that would wait, the search costs what they would."""
SEARCH_TOKENS = 21
"""What the search tool takes as it is written; what the provider makes of it, it does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deferral:
    """A body in which just the ``loaded`` tools are in the prompt, and those that are ``waiting`` are deferred.

    ``tokens`` are those of the prompt's tools.
    """

    body: bytes
    loaded: Kept
    waiting: frozenset[int]
    tokens: Tokens

    @property
    def lasting(self) -> Sequence[int]:
        """The places of what later requests load too.

        What was forced is loaded again where the history shows that it was called unfound: every replica sees that.
        """
        return [place for place, why in self.loaded.why.items() if why != "forced"]

    @property
    def reason(self) -> str:
        return f"{len(self.waiting)} tools wait to be searched for"


def deferral(codec: Codec, request: Request, stock: Stock, terms: Terms, wishes: Mapping[int, str]) -> Deferral | str:
    """How the tools that are not wished for are deferred; or why they are not."""
    if any(tool.deferred for tool in request.tools):
        return "it has deferred tools of its own"
    must = must_stay(request)
    loaded = loaded_of(request, terms, wishes)
    kept = [place for place in range(len(request.tools)) if place in must or place not in terms.barred]
    waiting = frozenset(kept) - frozenset(loaded.places)
    if len(waiting) < LEAST and not request.searched:
        return f"{len(waiting)} tools would be deferred, and the least is {LEAST}"
    if request.choice.mode == "required" and all(request.tools[place].hosted for place in loaded.places):
        return "a tool has to be called, and all of them would be deferred"
    body = codec.defer(request, loaded.places, kept)
    if body is None:
        return "this model's API has no search for deferred tools"
    tokens = sum(stock.tokens[place] for place in loaded.places)
    has_own = any(tool.searches for tool in request.tools)
    return Deferral(
        body=body,
        loaded=loaded,
        waiting=waiting,
        tokens=Tokens(tokens if has_own else tokens + SEARCH_TOKENS),
    )


def loaded_of(request: Request, terms: Terms, wishes: Mapping[int, str]) -> Kept:
    """The wished-for tools, and those that the request cannot do without in the prompt: hosted, protected, forced, and
    called without having been found before."""
    open_ = may_be_picked(request) - terms.barred
    wanted = {place: why for place, why in wishes.items() if place in open_}
    must = {
        place: why
        for place, why in must_stay(request).items()
        if why in ("hosted", "forced") or request.tools[place].protected or request.tools[place].name in request.native
    }
    return Kept(why=dict(sorted((must | wanted).items())))
