"""One request with deferred tools: the gateway answers the searches with references to what its board finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pegboard.gateways.llm.formats.edits import query_of
from pegboard.gateways.llm.formats.protocol import Codec, KeptSearches, LlmRequest
from pegboard.gateways.llm.formats.registry import deferral_of, tool_search_of
from pegboard.gateways.llm.formats.tool_references import Found, ReferenceExchange
from pegboard.gateways.llm.formats.tool_search import MOST_ROUNDS, Document, FunctionCall, ToolSearchCodec
from pegboard.gateways.llm.selection.deferral import DeferralPlan, listed_but_loaded, plan_without_selection
from pegboard.gateways.llm.selection.policy import Filtered
from pegboard.gateways.llm.tool_results.result_reads import MOST_READS, ResultReads, reads_alone
from pegboard.gateways.llm.tool_search import tool as search
from pegboard.gateways.llm.tool_search.round_trip import Find, find_in, looked_for, nothing


@dataclass(slots=True, kw_only=True)
class ReferenceRoundTrip:
    """The round trip. The array of tools never changes; ``found`` are the names of the tools that searches found."""

    format: ToolSearchCodec
    codec: Codec
    request: LlmRequest
    plan: DeferralPlan
    find: Find
    exchanges: list[ReferenceExchange] = field(default_factory=list)
    searches: int = 0
    found: list[str] = field(default_factory=list)
    reads: ResultReads | None = None

    @property
    def rounds(self) -> Sequence[frozenset[int]]:
        """What precedes the searches stays the same."""
        return [frozenset(self.plan.seen.places)] * len(self.exchanges)

    def body(self) -> bytes:
        """The current body of the request. After the last search all tools are in the prompt, and none searches; if the
        provider's history has loaded some, the others are, and the search is there, as that history demands."""
        body = self._plain
        if self.reads is not None:
            body = self.format.extended(body, self.reads.definitions)
        if not self.exchanges or (self._is_last and self.request.kept is not None):
            return body
        return self.plan.codec.continued(body, self.request, self.exchanges)

    def kept(self) -> KeptSearches | None:
        """What is left in the provider's history after the last answer; None if that has no searches."""
        if not self.request.stored or (self._is_last and self.request.kept is None):
            return None
        loaded = self.plan.codec.brought(self._plain)
        if self.request.kept is not None:
            loaded |= self.request.kept.loaded
        if not self._is_last:
            results = (found for exchange in self.exchanges for _, found in exchange.results)
            loaded = loaded.union(*(found for found in results if not isinstance(found, str)))
        return KeptSearches(loaded=loaded & self.request.names)

    @property
    def _is_last(self) -> bool:
        return self._asked() >= MOST_ROUNDS

    def _asked(self) -> int:
        """Repetitions for something else than reads."""
        return sum(1 for each in self.exchanges if not reads_alone(self.reads, [call for call, _ in each.results]))

    @property
    def _plain(self) -> bytes:
        """The body without the exchanges."""
        if not self._is_last:
            return self.plan.body
        if self.request.kept is not None:
            return self.plan.codec.deferred(self.request, listed_but_loaded(self.request, self.plan.tools))
        return self.codec.rewrite(self.request, sorted(self.plan.tools.kept))

    def held(self, name: str) -> bool:
        """Whether a call of this tool is buffered."""
        return name == self.plan.codec.call_name(self.plan.tools.search) or (
            self.reads is not None and self.reads.named(name)
        )

    def hides(self, name: str) -> bool:
        """Whether a call of this tool never reaches the client."""
        return self.held(name)

    def goes_on(self, answer: Document) -> bool:
        """Whether the gateway has to answer: all calls are searches."""
        calls = self.format.calls(answer)
        alone = reads_alone(self.reads, calls)
        left = self.reads is not None and self.reads.rounds < MOST_READS if alone else not self._is_last
        may = bool(calls) and left and self.format.waits(answer)
        return may and all(self.held(call.name) for call in calls)

    async def answer(self, answer: Document) -> None:
        """Answer the searches; the next `body` refers to what they found."""
        results = [(call, await self._found(call)) for call in self.format.calls(answer)]
        self.exchanges.append(ReferenceExchange(answer=answer, results=results))

    async def _found(self, call: FunctionCall) -> Found:
        if self.reads is not None and self.reads.named(call.name):
            return await self.reads.answer(call.name, call.arguments)
        self.searches += 1
        tools = await looked_for(self.find, query_of(call.arguments), self.plan.tools.loaded)
        if isinstance(tools, str):
            return tools
        names = [self.request.tools[place].name for place in tools]
        self.found += [name for name in names if name not in self.found]
        return tuple(names) or search.found(())

    async def found_by(self, call: FunctionCall) -> tuple[str, ...] | None:
        """The names of the tools that a search finds whose result comes with the client's next request: those that the
        history has not loaded by then."""
        kept = self.kept()
        if kept is None or call.name != self.plan.codec.call_name(self.plan.tools.search):
            return None
        there = kept.loaded.union(self.found)
        found = await self._found(call)
        return None if isinstance(found, str) else tuple(name for name in found if name not in there)


def chained_round_trip(codec: Codec, request: LlmRequest, filtered: Filtered | None) -> ReferenceRoundTrip | None:
    """The round trip of a request without deferral that continues a history with our searches (`LlmRequest.kept`); None
    for any other request. Searches find nothing: everything is there."""
    format_, deferral = tool_search_of(codec), deferral_of(codec)
    if request.kept is None or format_ is None or deferral is None or request.has_own_search:
        return None
    kept = range(len(request.tools)) if filtered is None else filtered.kept.places
    plan = plan_without_selection(deferral, request, kept)
    return ReferenceRoundTrip(format=format_, codec=codec, request=request, plan=plan, find=nothing)


def reference_round_trip(
    codec: Codec, request: LlmRequest, filtered: Filtered, plan: DeferralPlan, *, timeout: float
) -> ReferenceRoundTrip | None:
    """The round trip of a request with deferred tools; None if there is nothing to search with. A search may take
    ``timeout`` seconds."""
    format_, board = tool_search_of(codec), filtered.board
    if format_ is None or board is None:
        return None
    find = find_in(board, plan.waiting, timeout)
    return ReferenceRoundTrip(format=format_, codec=codec, request=request, plan=plan, find=find)
