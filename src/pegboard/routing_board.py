"""The board: all tools that an agent could use, and the call that selects those it needs now."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import compress

from pegboard.catalog import Catalog, continued
from pegboard.errors import EncoderError, PegboardError, ToolNotAvailable
from pegboard.events import CallRejected
from pegboard.model import Call, Candidate, Choices, Decision, Floats, Outcome, Scores, Tool, ToolId, Turn
from pegboard.protocols import Clock, DefinitionSource, Encoder, EventSink, Filter, VectorIndex
from pegboard.retrieval import Progress, Retriever, ranker
from pegboard.retrieval.fusion import Fusion
from pegboard.retrieval.index_thread import on_index_thread
from pegboard.retrieval.lexical import NO_DESCRIPTIONS
from pegboard.retrieval.search_index import SearchIndex
from pegboard.routing import (
    PROFILES,
    Eligibility,
    Profile,
    Router,
    Rule,
    SchemaLoader,
    check_arguments,
    check_arguments_now,
    check_available,
)
from pegboard.routing.economics import Economics, Knowledge, NearTies, Offers, Priced, PriceStage, Pricing
from pegboard.routing.encoder_fallback import Ranking
from pegboard.routing.explain import Explanation
from pegboard.routing.habit_learner import HabitLearner
from pegboard.routing.server_breakers import ServerBreakers
from pegboard.routing.subtask_router import SubtaskRouter
from pegboard.sequence_change import carried_over
from pegboard.shared_indexes import SharedIndexes

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """An encoder for tools and for queries, with the profile, fusions and index that fit its vectors.

    ``index`` holds the vectors of tools; None means in memory.
    """

    documents: Encoder
    queries: Encoder
    profile: Profile
    fusions: Mapping[str, Fusion] | None = None
    index: VectorIndex | None = None


class RoutingBoard:
    """Routes turns over a catalog that may change at any time, and checks calls; it does not execute them.

    A turn sees one snapshot of the catalog from beginning to end; a changed catalog takes effect with the next turn.
    `pegboard.compose.build_routing` makes one; `pegboard.Board`, which agents use, contains one (`Board.routing`).
    """

    def __init__(
        self,
        catalog: Catalog,
        profile: Profile,
        *,
        documents: Encoder,
        queries: Encoder,
        events: EventSink,
        clock: Clock,
        rules: Sequence[Rule] = (),
        always_available: Sequence[str] = (),
        source: DefinitionSource | None = None,
        patient: bool = True,
        fusions: Mapping[str, Fusion] | None = None,
        index: VectorIndex | None = None,
        fallback: Space | None = None,
        economics: Economics | None = None,
        resting: ServerBreakers | None = None,
        category_descriptions: Mapping[str, str] = NO_DESCRIPTIONS,
        learner: HabitLearner | None = None,
        texts: bool = False,
        shared: SharedIndexes | None = None,
    ) -> None:
        """``shared`` has the indexes of boards with the same tools, if there are others."""
        self._shared = shared
        self._category_descriptions = category_descriptions
        self._texts = texts
        self.learner = learner
        self._space = Space(documents=documents, queries=queries, profile=profile, fusions=fusions, index=index)
        self._fallback = fallback
        self._events = events
        self._clock = clock
        self._rules = tuple(rules)
        self._always_available = tuple(always_available)
        self._source = source
        self._patient = patient
        self._resting = resting
        self._economics = economics or Economics(knowledge=Knowledge(None, clock))
        self._offering: SubtaskRouter | None = None
        self._eligibility = Eligibility(())
        self._retrievers: list[Retriever] = []
        self._matched: tuple[tuple[Tool, ...], tuple[bool, ...]] = ((), ())
        """The tools of the catalog, and whether each is always available."""
        self._router = self._router_of(catalog)

    @property
    def catalog(self) -> Catalog:
        return self._router.catalog

    @property
    def profile(self) -> Profile:
        return self._space.profile

    async def route(self, turn: Turn | str, where: Filter | None = None) -> Decision:
        """Decide which tools a turn gets, among those that pass ``where``."""
        return await self._router.route(_turn(turn), where)

    async def unranked(self, turn: Turn) -> Decision:
        """All tools that the turn may use, in catalog order: no encoder is asked."""
        return await self._router.unranked(turn)

    async def search(self, turn: Turn | str, where: Filter | None = None, *, shown: int = 20) -> Decision:
        """`route` for a search, whose decision has at least ``shown`` candidates if there are so many."""
        return await self._router.route(_turn(turn), where, shown=shown)

    async def explain(self, turn: Turn | str) -> Explanation:
        """`route`, with the scores, the order and the prices behind the decision, and its event."""
        return await self._router.explain(_turn(turn))

    async def choices(self, turn: Turn | str, where: Filter | None = None) -> Choices:
        """The result of `route` for a turn that was served before and is only looked at again: no event is emitted."""
        return await self._router.choices(_turn(turn), where)

    def allowed(self, turn: Turn) -> frozenset[ToolId]:
        """The tools that the caller may use in this turn, regardless of relevance."""
        return self._router.allowed(turn)

    def permitted(self, turn: Turn) -> frozenset[ToolId]:
        """The tools that the caller's rights admit, regardless of the agent's state."""
        return self._router.permitted(turn)

    def pool(self, turn: Turn) -> str:
        """The summaries of all tools that the caller's rights admit (phase 1, Tool Attention §4.4)."""
        return self._router.pool(turn).text

    @property
    def pinned(self) -> tuple[ToolId, ...]:
        """The always-available tools of the catalog."""
        return self._router.pinned

    async def rank(self, turn: Turn | str) -> tuple[Candidate, ...]:
        """All tools that the turn may use, best first, without threshold, k or budget."""
        return await self._router.rank(_turn(turn))

    async def scores(self, turn: Turn | str) -> Scores | None:
        """The scores of all tools, in catalog order, and their parts; None if relevance is unknown."""
        return await self._router.scores(_turn(turn))

    async def priced(self, turn: Turn | str) -> Priced | None:
        """Every term of EHRR's two layers, for servers and tools; None under other profiles and if relevance is
        unknown."""
        return await self._router.priced(_turn(turn))

    async def offers(self, turn: Turn | str) -> Offers:
        """ROUTE for a model: the tools that are worth their price, with their terms, or the reason why there are none.

        A profile without prices is replaced by `ehrr`.
        """
        if self._offering is None:
            self._offering = self._offering_of(self.catalog)
        return await self._offering.offers(_turn(turn))

    def observe(self, outcome: Outcome) -> None:
        """Take the outcome of a call into account from the next turn of this process on."""
        self._economics.knowledge.observe(outcome)
        if self._resting is not None:
            self._resting.observe(outcome)

    async def warm(self, progress: Progress | None = None) -> None:
        """Build the indexes now instead of with the first turn."""
        if self.profile.is_priced:
            await self._economics.knowledge.refresh()
        await self._router.warm(progress)

    async def index_words(self) -> None:
        """Build what ranking by words needs, unless it is there. That may wait for the indexes of other boards: whoever
        has few places for turns does it before a turn takes one."""
        await self._router.index_words()

    async def search_index(self) -> SearchIndex:
        """What searches need besides the ranking of this catalog. Built on a thread, with the first use (P25)."""
        retriever = self._retrievers[0]
        if not retriever.knows_search_index:
            await on_index_thread(len(retriever.tools), lambda: retriever.search_index)
        return retriever.search_index

    async def vectors(self) -> Floats:
        """One vector per tool, of its purpose and its method: shape (n, d), unit rows, in catalog order."""
        first, *others = self._retrievers
        try:
            return await first.vectors()
        except EncoderError:
            if not others:
                raise
            return await others[0].vectors()

    def check(
        self, call: Call, decision: Decision, admit: Callable[[Call, Decision], ToolId] = check_available
    ) -> ToolId:
        """The tool of a model's call. Raises ToolNotAvailable or ArgumentsInvalid, and emits an event then.

        ``admit`` is the gate: it returns the tool that a call means, if it may be called.
        """
        return self.admit(call, lambda: admit(call, decision))

    def admit(self, call: Call, find: Callable[[], ToolId]) -> ToolId:
        """Like `check`, for a gate that does not use a decision."""
        with self._telling(call):
            tool = self._found(call, find)
            check_arguments_now(self.catalog[tool], call.arguments)
        return tool

    async def admitted(self, call: Call, find: Callable[[], ToolId]) -> ToolId:
        """Like `admit`, without blocking the event loop while arguments are validated."""
        with self._telling(call):
            tool = self._found(call, find)
            await check_arguments(self.catalog[tool], call.arguments)
        return tool

    def _found(self, call: Call, find: Callable[[], ToolId]) -> ToolId:
        tool = find()
        if tool not in self.catalog:
            raise ToolNotAvailable(call.name, [], remedy="Its server is gone; route the turn again.")
        return tool

    @contextmanager
    def _telling(self, call: Call) -> Iterator[None]:
        """Emit an event if the call is refused."""
        try:
            yield
        except PegboardError as error:
            self._events.emit(CallRejected(at=self._clock.time(), tool=call.name, reason=error.code))
            raise

    def replace_catalog(self, catalog: Catalog) -> None:
        """Use this catalog from the next turn on. Texts that were embedded before are not embedded again."""
        catalog = catalog if self._shared is None else self._shared.catalog(catalog)
        self._router = self._router_of(continued(catalog, self.catalog))

    def _router_of(self, catalog: Catalog) -> Router:
        before: Sequence[Retriever | None] = self._retrievers or [None] * len(self._spaces)
        self._retrievers = [
            self._retriever(catalog, space, earlier) for space, earlier in zip(self._spaces, before, strict=True)
        ]
        first, rankings = self._retrievers[0], self._rankings(self._spaces)
        self._offering = None
        self._eligibility = Eligibility(catalog.tools, self._rules, self._resting, self._eligibility)
        if not self._rules:  # then it is the same for all boards with this catalog
            key = Eligibility, id(self._resting)
            self._eligibility = catalog.derived.setdefault(key, self._eligibility)
        return Router(
            catalog,
            *rankings,
            eligibility=self._eligibility,
            loader=SchemaLoader(self._source or catalog),
            events=self._events,
            clock=self._clock,
            always_available=self._pinned(catalog),
            pricing=self._worth_of(catalog),
            learner=self.learner,
            mentions=lambda: first.mentions,
            texts=self._texts,
        )

    def _worth_of(self, catalog: Catalog) -> PriceStage | None:
        if self.profile.is_priced:
            return Pricing(catalog, self._economics)
        ties = self._economics.near_ties > 0 and self.profile.scale == "probability"
        return NearTies(catalog, self._economics) if ties else None

    def _offering_of(self, catalog: Catalog) -> SubtaskRouter:
        spaces = self._spaces
        if not self.profile.is_priced:
            spaces = [replace(space, profile=PROFILES["ehrr"]) for space in spaces]
        return SubtaskRouter(
            catalog,
            *self._rankings(spaces),
            pricing=Pricing(catalog, self._economics),
            eligibility=self._eligibility,
            events=self._events,
            clock=self._clock,
        )

    def _retriever(self, catalog: Catalog, space: Space, before: Retriever | None) -> Retriever:
        descriptions = self._category_descriptions

        def make() -> Retriever:
            return _retriever(catalog, space, descriptions, before)

        if self._shared is None or space.index is not None:
            return make()
        return self._shared.retriever(catalog, space.documents, descriptions, make)

    @property
    def _spaces(self) -> list[Space]:
        return [self._space] if self._fallback is None else [self._space, self._fallback]

    def _rankings(self, spaces: Sequence[Space]) -> list[Ranking]:
        return [
            self._way(space, each, last=space is spaces[-1])
            for space, each in zip(spaces, self._retrievers, strict=True)
        ]

    def _way(self, space: Space, retriever: Retriever, *, last: bool) -> Ranking:
        return Ranking(
            profile=space.profile,
            ranker=ranker(space.profile.ranker, retriever, patient=self._patient, fusions=space.fusions, last=last),
            encoder=space.documents,
        )

    def _pinned(self, catalog: Catalog) -> list[ToolId]:
        if not self._always_available:
            return []
        flags = carried_over(*self._matched, catalog.tools, self._are_always_available)
        self._matched = catalog.tools, flags
        return [tool.id for tool in compress(catalog.tools, flags)]

    def _are_always_available(self, tools: Sequence[Tool]) -> list[bool]:
        return [
            any(fnmatchcase(str(tool.id), pattern) or tool.name == pattern for pattern in self._always_available)
            for tool in tools
        ]


def _retriever(
    catalog: Catalog, space: Space, category_descriptions: Mapping[str, str], before: Retriever | None
) -> Retriever:
    return Retriever(
        catalog.tools,
        catalog.servers,
        documents=space.documents,
        queries=space.queries,
        index=space.index,
        category_descriptions=category_descriptions,
        before=before,
    )


def _turn(turn: Turn | str) -> Turn:
    return Turn.ask(turn) if isinstance(turn, str) else turn


def route_now(board: RoutingBoard, turn: Turn | str) -> Decision:
    """`RoutingBoard.route` for callers without an event loop."""
    return asyncio.run(board.route(turn))
