"""Which tools are in the prompt if the others are deferred until the provider's search finds them (P21).

The prompt begins with the same bytes from the first turn on: the tools that the first request needed, and those that
requests ask for themselves. Tools that a search finds stay deferred, as the history refers to them; so relevance loads
nothing later. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pegboard.gateways.llm.formats.protocol import Codec, LlmRequest
from pegboard.gateways.llm.formats.tool_choice import KeptTools, may_be_picked, must_stay
from pegboard.gateways.llm.selection.board_cache import ToolBoard
from pegboard.gateways.llm.selection.cache_aware_selection import SelectionTerms
from pegboard.model import Tokens

LEAST = 10
"""With fewer deferred tools, the search tool costs as much as it saves."""
SEARCH_TOKENS = 21
"""Tokens of the search tool as written; what the provider adds is not documented."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deferral:
    """A body in which only the ``loaded`` tools are in the prompt and those ``waiting`` are deferred.

    ``tokens`` are those of the tools in the prompt.
    """

    body: bytes
    loaded: KeptTools
    waiting: frozenset[int]
    tokens: Tokens

    @property
    def lasting(self) -> Sequence[int]:
        """The places that later requests load, too.

        A forced tool is loaded again if the history shows that it was called without being found: every replica sees
        that.
        """
        return [place for place, why in self.loaded.why.items() if why != "forced"]

    @property
    def reason(self) -> str:
        return f"{len(self.waiting)} tools are deferred"


def deferral(
    codec: Codec, request: LlmRequest, board: ToolBoard, terms: SelectionTerms, wishes: Mapping[int, str]
) -> Deferral | str:
    """How to defer the tools that are not wished for, or the reason not to."""
    if any(tool.deferred for tool in request.tools):
        return "it already has deferred tools"
    must = must_stay(request)
    loaded = loaded_of(request, terms, wishes)
    kept = [place for place in range(len(request.tools)) if place in must or place not in terms.barred]
    waiting = frozenset(kept) - frozenset(loaded.places)
    if len(waiting) < LEAST and not request.searched:
        return f"{len(waiting)} tools would be deferred, and the minimum is {LEAST}"
    if request.choice.mode == "required" and all(request.tools[place].hosted for place in loaded.places):
        return "a call is required, and all tools would be deferred"
    body = codec.defer(request, loaded.places, kept)
    if body is None:
        return "this model's API has no search for deferred tools"
    tokens = sum(board.tokens[place] for place in loaded.places)
    has_own = any(tool.searches for tool in request.tools)
    return Deferral(
        body=body,
        loaded=loaded,
        waiting=waiting,
        tokens=Tokens(tokens if has_own else tokens + SEARCH_TOKENS),
    )


def loaded_of(request: LlmRequest, terms: SelectionTerms, wishes: Mapping[int, str]) -> KeptTools:
    """The wished-for tools, and those that must be in the prompt: hosted, protected, forced, and called without being
    found."""
    open_ = may_be_picked(request) - terms.barred
    wanted = {place: why for place, why in wishes.items() if place in open_}
    must = {
        place: why
        for place, why in must_stay(request).items()
        if why in ("hosted", "forced") or request.tools[place].protected or request.tools[place].name in request.native
    }
    return KeptTools(why=dict(sorted((must | wanted).items())))
