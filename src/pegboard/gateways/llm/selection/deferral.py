"""Which tools are in the prompt if the others are deferred, and which of those the history refers to (P21).

The prompt of every conversation begins with the same bytes: the tools that stay, and the search. What is relevant to a
message of the user is referred to behind it. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from pegboard.gateways.llm.formats.edits import written
from pegboard.gateways.llm.formats.protocol import Codec, LlmRequest
from pegboard.gateways.llm.formats.registry import deferral_of, tool_search_of
from pegboard.gateways.llm.formats.tool_choice import KeptTools, must_stay
from pegboard.gateways.llm.formats.tool_references import DeferralCodec, DeferredTools
from pegboard.gateways.llm.formats.tool_search import SearchTool
from pegboard.gateways.llm.selection.board_cache import ToolBoard
from pegboard.gateways.llm.selection.cache_aware_selection import SelectionTerms, named
from pegboard.gateways.llm.tool_search import tool as search
from pegboard.model import Tokens
from pegboard.prompt_cache import deferral_support
from pegboard.settings.llm import Way
from pegboard.wire_formats import free_name

LEAST = 10
"""With fewer deferred tools, the search tool costs as much as it saves."""
SCHEMA_TOKENS = 50
"""Tokens of the search tool besides its name and description."""
NO_SEARCH = "this model's API has no search for deferred tools"
NOTHING_TO_FIND = "All tools are among yours already: this finds no others."


@dataclass(frozen=True, slots=True, kw_only=True)
class DeferralPlan:
    """A body in which only the ``loaded`` tools are in the prompt and those ``waiting`` are deferred, with references
    to those ``referred``.

    ``tokens`` are those of the tools in the prompt, of the search, and of the definitions referred to.
    """

    codec: DeferralCodec
    tools: DeferredTools
    body: bytes
    loaded: KeptTools
    waiting: frozenset[int]
    referred: frozenset[int]
    tokens: Tokens

    @property
    def seen(self) -> KeptTools:
        """The tools whose definitions the model sees."""
        return KeptTools(
            why=dict(sorted((dict.fromkeys(self.referred, "referred to") | dict(self.loaded.why)).items()))
        )

    @property
    def reason(self) -> str:
        """The way in words, for the header and the log."""
        loaded = f", {len(self.referred)} of them loaded by reference" if self.referred else ""
        return f"{len(self.waiting)} tools are deferred{loaded}; Pegboard searches"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeferralSearch:
    """The search tool for one array of tools, and its tokens."""

    tool: SearchTool
    tokens: Tokens


def not_deferred(codec: Codec, request: LlmRequest, terms: SelectionTerms, url_query: str) -> str:
    """Why a request's tools cannot be deferred; empty if they can. `NO_SEARCH`: they may be by `emulated_ways`."""
    deferral, searching = deferral_of(codec), tool_search_of(codec)
    if deferral is None or searching is None or deferral_support(codec.name, request.model).search == "none":
        return NO_SEARCH
    return deferral.closed(request) or searching.closed(request, url_query) or _too_few(request, terms)


def not_emulated(codec: Codec, request: LlmRequest, terms: SelectionTerms, url_query: str) -> str:
    """Why deferral cannot be emulated either; empty if it can: what is not shown has to be within the model's reach."""
    searching = tool_search_of(codec)
    if searching is None:
        return "this format has no calls that could be answered"
    if request.has_own_search:
        return "its tools are searched for"
    if request.choice.names is not None and not request.choice.forced:
        return "it says which tools may be called"
    return searching.closed(request, url_query) or _too_few(request, terms)


def emulated_ways(codec: Codec, request: LlmRequest, ways: Sequence[Way]) -> tuple[Way, ...]:
    """These ways with one that emulates deferral in its place, by the table of what models can do.

    A search in a list that changes is no way beside others: only alone does it come with the search.
    """
    emulated = deferral_support(codec.name, request.model).emulated
    if emulated == "search_tools":
        return tuple(way for way in ways if way != "defer") or ("tools",)
    return tuple(dict.fromkeys(emulated if way == "defer" else way for way in ways))


def _too_few(request: LlmRequest, terms: SelectionTerms) -> str:
    waiting = len(_kept(request, terms)) - len(loaded_of(request, terms, {}).places)
    return "" if waiting >= LEAST else f"{waiting} tools would be deferred, and the minimum is {LEAST}"


def loaded_of(request: LlmRequest, terms: SelectionTerms, wishes: Mapping[int, str]) -> KeptTools:
    """The tools in the prompt: hosted, protected and forced ones, those that are always available, and those wished
    for."""
    must = {
        place: why
        for place, why in must_stay(request).items()
        if why in ("hosted", "forced") or request.tools[place].protected
    }
    wanted = {place: why for place, why in wishes.items() if place not in terms.barred}
    return KeptTools(why=dict(sorted((wanted | dict.fromkeys(terms.always - terms.barred, "always") | must).items())))


def search_of(request: LlmRequest, board: ToolBoard, terms: SelectionTerms, budget: int) -> DeferralSearch:
    """The search tool, whose description has a summary of the tools that may be found. It depends on the tools and the
    policy alone, so that every conversation begins with the same bytes."""
    catalog = board.routing.catalog
    out = [catalog[tool] for place, tool in sorted(board.ids.items()) if place not in terms.barred]
    pool = search.pool_of(out, catalog.counter, budget)
    name = free_name(search.NAME, request.names | request.called | request.referenced)
    tool = SearchTool(name=name, description=search.description(pool))
    counted = catalog.counter.count([written(tool.name + tool.description).decode()])[0]
    return DeferralSearch(tool=tool, tokens=Tokens(counted + SCHEMA_TOKENS))


def deferral_plan(
    codec: DeferralCodec,
    request: LlmRequest,
    board: ToolBoard,
    terms: SelectionTerms,
    found: DeferralSearch,
    shown: Mapping[int, Sequence[int]],
) -> DeferralPlan:
    """How to defer the tools of a request that can be. ``shown`` are the places of the tools relevant to the user's
    messages, by message number.

    Where references cannot be pushed, those relevant to the first message are in the prompt from then on.
    """
    pushes = codec.may_push(request)
    first = () if pushes else shown.get(min(shown, default=0), ())
    loaded = loaded_of(request, terms, dict.fromkeys(first, "relevant"))
    kept, in_prompt = _kept(request, terms), frozenset(loaded.places)
    pushed = {number: tuple(place for place in places if place in kept - in_prompt) for number, places in shown.items()}
    tools = DeferredTools(loaded=in_prompt, kept=kept, search=found.tool, pushed=pushed if pushes else {})
    waiting = kept - in_prompt
    known = request.called | request.referenced | (request.kept.loaded if request.kept is not None else frozenset())
    referred = frozenset().union(*tools.pushed.values(), named(request, known)) & waiting
    return DeferralPlan(
        codec=codec,
        tools=tools,
        body=codec.deferred(request, tools),
        loaded=loaded,
        waiting=waiting,
        referred=referred,
        tokens=Tokens(found.tokens + sum(board.tokens[place] for place in in_prompt | referred)),
    )


def listed_but_loaded(request: LlmRequest, tools: DeferredTools) -> DeferredTools:
    """All tools in the prompt but those that the provider's history has loaded, with nothing to be found. Those that
    the request's choice names are listed in any case: providers refuse a choice of what is not."""
    loaded = request.kept.loaded - (request.choice.names or frozenset()) if request.kept is not None else frozenset()
    return replace(tools, loaded=tools.kept - named(request, loaded), pushed={})


def plan_without_selection(codec: DeferralCodec, request: LlmRequest, kept: Collection[int]) -> DeferralPlan:
    """How a request is sent for which nothing was selected, if the provider's history has searches: with these tools,
    and the search, which that history demands."""
    name = free_name(search.NAME, request.names | request.called | request.referenced)
    tool = SearchTool(name=name, description=NOTHING_TO_FIND)
    everything = DeferredTools(loaded=frozenset(), kept=frozenset(kept), search=tool, pushed={})
    tools = listed_but_loaded(request, everything)
    return DeferralPlan(
        codec=codec,
        tools=tools,
        body=codec.deferred(request, tools),
        loaded=KeptTools(why=dict.fromkeys(sorted(tools.loaded), "left alone")),
        waiting=frozenset(),
        referred=tools.kept - tools.loaded,
        tokens=Tokens(0),
    )


def _kept(request: LlmRequest, terms: SelectionTerms) -> frozenset[int]:
    """All tools but the barred ones, which a search could find; what the request itself needs stays."""
    return frozenset(range(len(request.tools))) - (terms.barred - must_stay(request).keys())
