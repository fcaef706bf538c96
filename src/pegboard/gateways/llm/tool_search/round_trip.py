"""Tool search in one request: whether it is offered, which calls the gateway answers, and the next body."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field

from pegboard.board_items import BOARD_KINDS
from pegboard.catalog import BpeCounter
from pegboard.errors import PegboardError
from pegboard.gateways.llm.formats.edits import kind_of, query_of
from pegboard.gateways.llm.formats.protocol import Codec, LlmRequest, OfferedTool
from pegboard.gateways.llm.formats.registry import tool_search_of
from pegboard.gateways.llm.formats.tool_search import (
    MOST_ROUNDS,
    Document,
    FunctionCall,
    SearchExchange,
    SearchTool,
    ToolSearchCodec,
)
from pegboard.gateways.llm.selection.board_cache import ToolBoard
from pegboard.gateways.llm.selection.policy import Filtered
from pegboard.gateways.llm.tool_results.result_reads import MOST_READS, ResultReads, reads_alone
from pegboard.gateways.llm.tool_search import tool as search
from pegboard.gateways.llm.tool_search.searched_items import SearchedItems
from pegboard.model import Tool, Turn
from pegboard.settings.llm import HiddenCall
from pegboard.wire_formats import free_name

SCHEMA_TOKENS = 50
"""Tokens of the search tool besides its name and description: its one parameter, about the same in any format."""
LOGGER = logging.getLogger(__name__)
Find = Callable[[str, Collection[int]], Awaitable[dict[int, Tool]]]
"""Finds the places of tools for a query, best first, excluding the given ones."""
Listing = Callable[[frozenset[int]], SearchTool | None]
"""The search tool beside the tools of these places; None if it would find nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSearchTerms:
    """A policy's settings for tool search. ``search_tokens`` is the budget of the pool in the tool's description."""

    offered: bool = False
    hidden_call: HiddenCall = "pass"
    search_tokens: int = 0

    @property
    def any(self) -> bool:
        return self.offered or self.hidden_call != "pass"


@dataclass(slots=True, kw_only=True)
class ToolSearchRoundTrip:
    """One request with tool search. ``tool`` is None if no search is offered. Where tools come back, ``listing`` makes
    it anew: as the conversation's next request has it, so that this one is a cached prefix of that. ``exhausted`` means
    that nothing is left to find.

    ``kept`` are the places of the tools that the model has now, ``open`` those that may be found, ``found`` the names
    of those that were; ``tail`` are the places of found tools, which come after the others in the order in which they
    were found, also in earlier requests of the conversation. ``rounds`` are the places that the model had in each
    repetition. ``tokens`` are those of the search tool.
    """

    format: ToolSearchCodec
    codec: Codec
    request: LlmRequest
    kept: frozenset[int]
    open: frozenset[int]
    hidden_call: HiddenCall
    tool: SearchTool | None
    find: Find
    listing: Listing | None = None
    exhausted: bool = False
    tokens: int = 0
    tail: tuple[int, ...] = ()
    exchanges: list[SearchExchange] = field(default_factory=list)
    searches: int = 0
    found: list[str] = field(default_factory=list)
    rounds: list[frozenset[int]] = field(default_factory=list)
    reads: ResultReads | None = None
    items: SearchedItems | None = None
    timeout: float = 0.0
    built: tuple[Hashable, bytes] | None = field(default=None, repr=False)
    """The last body, by what it was built from."""

    def body(self) -> bytes:
        """The current body of the request."""
        made_from = (self.kept, self.tail, id(self.request), id(self.tool), id(self.reads), len(self.exchanges))
        if self.built is None or self.built[0] != made_from:
            self.built = made_from, self._body()
        return self.built[1]

    def _body(self) -> bytes:
        body = in_order(self.codec, self.request, self.kept, self.tail)
        if self.tool is not None and not self.exhausted and self._may_search():
            body = self.format.offer(body, self.tool)
        if self.reads is not None:
            body = self.format.extended(body, self.reads.definitions)
        return self.format.continued(body, self.exchanges) if self.exchanges else body

    def held(self, name: str) -> bool:
        """Whether a call of this tool is buffered: the gateway answers it if no call for the client comes with it."""
        return self._is_ours(name) or (self.hidden_call != "pass" and self.is_hidden(name))

    def hides(self, name: str) -> bool:
        """Whether a call of this tool never reaches the client.

        A hidden tool is one that the caller offered: its calls go to the caller unless the guard answers them.
        """
        return self._is_ours(name) or (self.hidden_call == "guard" and self.is_hidden(name))

    def _is_ours(self, name: str) -> bool:
        return self.is_search(name) or (self.reads is not None and self.reads.named(name))

    def is_search(self, name: str) -> bool:
        return self.tool is not None and name == self.tool.name

    def is_hidden(self, name: str) -> bool:
        """Whether the request allows the tool and the model was not shown it."""
        allowed = (self.request.tools[place].name for place in self.request.may_be_picked)
        return name not in self._shown() and name in allowed

    def goes_on(self, answer: Document) -> bool:
        """Whether the gateway has to answer: all calls are buffered ones."""
        calls = self.format.calls(answer)
        may = bool(calls) and self._rounds_left(calls) and self.format.waits(answer)
        return may and all(self.held(call.name) for call in calls)

    async def answer(self, answer: Document) -> None:
        """Answer the calls; the next `body` includes the results and the tools that were found."""
        before, calls = self.kept, self.format.calls(answer)
        said = {place: await self._result(call) for place, call in self._in_turn(calls)}
        results = [(call, said[place]) for place, call in enumerate(calls)]
        self.exchanges.append(SearchExchange(answer=answer, results=results))
        if not self.kept and self._asked() == MOST_ROUNDS:
            self.kept = frozenset(range(len(self.request.tools)))  # a history with calls needs tools (P14)
        if self.kept != before and self.listing is not None:
            listed = self.listing(self.kept)
            self.tool, self.exhausted = listed or self.tool, listed is None
        self.rounds.append(self.kept)
        self.found += [self.request.tools[place].name for place in sorted(self.kept - before)]

    def _in_turn(self, calls: Sequence[FunctionCall]) -> list[tuple[int, FunctionCall]]:
        """The calls with their places, as they are answered. The guard is last: it names the search if one is left."""
        guarded = self.hidden_call == "guard"
        return sorted(enumerate(calls), key=lambda each: guarded and not self.is_search(each[1].name))

    def _asked(self) -> int:
        """Repetitions for something else than reads."""
        return sum(1 for each in self.exchanges if not reads_alone(self.reads, [call for call, _ in each.results]))

    def _rounds_left(self, calls: Sequence[FunctionCall]) -> bool:
        if self.reads is not None and reads_alone(self.reads, calls):
            return self.reads.rounds < MOST_READS
        return self._asked() < MOST_ROUNDS

    async def _result(self, call: FunctionCall) -> str:
        if self.reads is not None and self.reads.named(call.name):
            return await self.reads.answer(call.name, call.arguments)
        if self.is_search(call.name):
            return await self._searched(call)
        back = {place for place in self.open if self.request.tools[place].name == call.name}
        if self.hidden_call == "guard" or not back:
            named = self.tool.name if self.tool is not None and not self.exhausted and self._may_search(more=1) else ""
            return search.refused(call.name, sorted(self._shown()), search=named)
        self.kept |= back
        return search.shown_now(call.name)

    async def _searched(self, call: FunctionCall) -> str:
        query, kind = query_of(call.arguments), None if self.items is None else kind_of(call.arguments)
        tools = await self._looked_for(query, for_tools=kind in (None, "tool"))
        if isinstance(tools, str):
            return tools
        self.kept |= tools.keys()
        if self.items is None:
            return search.found(tools.values())
        return search.found(tools.values(), await self.items.found(call.name, query, kind, self.timeout))

    async def found_by(self, call: FunctionCall) -> tuple[str, ...] | None:
        """The names of the tools that a search finds whose result comes with the client's next request."""
        tools = await self._looked_for(query_of(call.arguments)) if self.is_search(call.name) else ""
        if isinstance(tools, str):
            return None
        names = [self.request.tools[place].name for place in tools]
        self.found += [name for name in names if name not in self.found]
        return tuple(names)

    async def _looked_for(self, query: str, *, for_tools: bool = True) -> dict[int, Tool] | str:
        self.searches += 1
        tools = await looked_for(self.find if for_tools else nothing, query, self.kept)
        if not isinstance(tools, str):
            movable = (place for place in tools if may_be_moved(self.request.tools[place]))
            self.tail += tuple(place for place in movable if place not in self.tail)
        return tools

    def _may_search(self, more: int = 0) -> bool:
        """Whether a search is offered after so many ``more`` repetitions. Not in the last; nor after a search if a call
        is required, as the search was that call."""
        required = self.request.choice.mode == "required"
        return self._asked() + more < MOST_ROUNDS and not (self.searches and required)

    def _shown(self) -> frozenset[str]:
        return frozenset(self.request.tools[place].name for place in self.kept)


def round_trip_of(
    codec: Codec,
    request: LlmRequest,
    filtered: Filtered,
    terms: ToolSearchTerms,
    *,
    query: str,
    timeout: float,
    items: SearchedItems | None = None,
) -> ToolSearchRoundTrip | None:
    """The round trip with tool search; None if there is none, or if nothing is left out and no item is likely.
    ``query`` is that of the URL; a search may take ``timeout`` seconds, and finds ``items`` besides tools."""
    board, format_ = filtered.board, tool_search_of(codec)
    if not terms.any or format_ is None or format_.closed(request, query):
        return None
    kept = frozenset(filtered.kept.places)
    open_ = request.may_be_picked - filtered.barred
    catalog = None if board is None else board.routing.catalog
    items = items if items is not None and items.any else None
    offered = terms.offered and lists_search(request)
    likely = None if items is None or not offered else items.likely(request)
    counter = BpeCounter() if catalog is None else catalog.counter

    def listing(shown: frozenset[int]) -> SearchTool | None:
        out = [] if board is None else [board.routing.catalog[board.ids[place]] for place in sorted(open_ - shown)]
        if not (out or likely):
            return None
        return SearchTool(
            name=free_name(search.NAME, request.names | request.called | request.referenced),
            description=search.description(search.pool_of(out, counter, terms.search_tokens), likely),
            kinds=() if items is None else BOARD_KINDS,
        )

    tool = listing(kept) if offered else None
    tokens = 0 if tool is None else search.tokens_of(tool.name + tool.description, counter) + SCHEMA_TOKENS
    if tool is None and (terms.hidden_call == "pass" or len(kept) == len(request.tools)):
        return None
    return ToolSearchRoundTrip(
        format=format_,
        codec=codec,
        request=request,
        kept=kept,
        open=open_,
        hidden_call=terms.hidden_call,
        tool=tool,
        find=nothing if board is None else find_in(board, open_, timeout),
        listing=None if tool is None else listing,
        tokens=tokens,
        tail=filtered.tail,
        items=items,
        timeout=timeout,
    )


def in_order(codec: Codec, request: LlmRequest, kept: Collection[int], tail: Sequence[int]) -> bytes:
    """The body with these tools, those of the ``tail`` at the end of the list: what precedes them stays cached.

    In the client's order if it lists the tools that may be called, or if nothing precedes them.
    """
    last = [place for place in tail if place in kept]
    first, format_ = sorted(set(kept) - set(last)), tool_search_of(codec)
    if not last or not first or format_ is None or request.choice.names is not None:
        return codec.rewrite(request, sorted(kept))
    return format_.extended(codec.rewrite(request, first), [request.tools[place].definition for place in last])


def may_be_moved(tool: OfferedTool) -> bool:
    """Not a tool in a namespace, or with a cache breakpoint, which belongs where it is."""
    return not tool.hosted and not tool.namespace and tool.breakpoint is None


def find_in(board: ToolBoard, open_: Collection[int], timeout: float) -> Find:
    """Finds tools of these places; a search may take ``timeout`` seconds."""
    catalog = board.routing.catalog

    async def find(asked: str, among: Collection[int]) -> dict[int, Tool]:
        async with asyncio.timeout(timeout):
            ranked = await board.routing.rank(Turn.ask(asked))
        places = {board.places[each.tool]: catalog[each.tool] for each in ranked}
        new = [place for place in places if place in open_ and place not in among]
        return {place: places[place] for place in new[: search.FOUND]}

    return find


async def nothing(asked: str, among: Collection[int]) -> dict[int, Tool]:
    """Finds no tools: all are there, or others than tools are asked for."""
    return {}


async def looked_for(find: Find, query: str, among: Collection[int]) -> dict[int, Tool] | str:
    """The tools that a search finds besides these places, or a text that says why there are none."""
    if not query:
        return search.nothing_asked()
    try:
        return await find(query, among)
    except (PegboardError, TimeoutError) as error:
        return search.not_found_now(type(error).__name__)
    except Exception as error:
        LOGGER.exception("A search for tools failed")
        return search.not_found_now(type(error).__name__)


def may_search(request: LlmRequest) -> bool:
    """Not if the request restricts which tools may be called, or forbids calls; nor beside a search of its own."""
    return request.choice.mode != "none" and request.choice.names is None and not request.has_own_search


def lists_search(request: LlmRequest) -> bool:
    """Whether the search tool may be among a request's tools: also where no search may be called now, but was offered
    earlier in the conversation, whose cached prefix has the tool.

    Not in the first request of a conversation: what is asked once has nothing in a cache.
    """
    choice = request.choice
    is_shut = choice.mode == "none" or choice.forced
    goes_on = any(message.role == "assistant" for message in request.turn.messages)
    return may_search(request) or (is_shut and goes_on and not request.has_own_search)
