"""The board: every tool an agent could use, and the one call that picks those it needs now."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from pegboard.catalog import Catalog
from pegboard.errors import EncoderError, PegboardError, ToolNotAvailable
from pegboard.events import CallRejected
from pegboard.model import Call, Candidate, Choices, Decision, Floats, Outcome, Scores, ToolId, Turn
from pegboard.retrieval import Progress, Retriever, ranker
from pegboard.retrieval.fusion import Fusion
from pegboard.routing import (
    PROFILES,
    Eligibility,
    Profile,
    Router,
    Rule,
    SchemaLoader,
    check_arguments,
    check_available,
)
from pegboard.routing.economics import Economics, Knowledge, NearTies, Offers, Priced, Pricing, Worth
from pegboard.routing.offering import Offering
from pegboard.routing.resting import Resting
from pegboard.routing.standby import Way
from pegboard.seams import Clock, DefinitionSource, Encoder, EventSink, Filter, VectorIndex

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """An encoder, for tools and for queries, with all that is right for its vectors alone: they change together.

    ``index`` is where the vectors of tools are; None for memory.
    """

    documents: Encoder
    queries: Encoder
    profile: Profile
    fusions: Mapping[str, Fusion] | None = None
    index: VectorIndex | None = None


class RoutingBoard:
    """Routes turns over a catalog that may change while it serves, and checks calls; it carries none out.

    A turn sees one snapshot from beginning to end; a changed catalog serves the next turn.
    Make one with `pegboard.build`. `pegboard.Board`, which agents use, has one inside.
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
        resting: Resting | None = None,
    ) -> None:
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
        self._offering: Offering | None = None
        self._router = self._router_of(catalog)

    @property
    def catalog(self) -> Catalog:
        return self._router.catalog

    @property
    def profile(self) -> Profile:
        return self._space.profile

    async def route(self, turn: Turn | str, where: Filter | None = None) -> Decision:
        """The tools of a turn: what is active, what is reachable, and why; of those that pass ``where``."""
        return await self._router.route(_turn(turn), where)

    async def choices(self, turn: Turn | str, where: Filter | None = None) -> Choices:
        """What `route` makes of a turn that was served before and is looked at again: no event tells of it."""
        return await self._router.choices(_turn(turn), where)

    def allowed(self, turn: Turn) -> frozenset[ToolId]:
        """What the caller may use at this point, whatever the turn is about."""
        return self._router.allowed(turn)

    def permitted(self, turn: Turn) -> frozenset[ToolId]:
        """What the caller has a right to, whatever the state of the work."""
        return self._router.permitted(turn)

    def pool(self, turn: Turn) -> str:
        """The summary of everything the caller has a right to (phase 1, seed 000 §4.4)."""
        return self._router.pool(turn).text

    @property
    def pinned(self) -> tuple[ToolId, ...]:
        """The always-available tools of the catalog."""
        return self._router.pinned

    async def rank(self, turn: Turn | str) -> tuple[Candidate, ...]:
        """Every tool the turn may use, best first, with no gate."""
        return await self._router.rank(_turn(turn))

    async def scores(self, turn: Turn | str) -> Scores | None:
        """The scores of all tools in catalog order and their parts; None where nothing can be said about relevance."""
        return await self._router.scores(_turn(turn))

    async def priced(self, turn: Turn | str) -> Priced | None:
        """Every term of EHRR's two layers, of servers and tools; None under other profiles, and without a query."""
        return await self._router.priced(_turn(turn))

    async def offers(self, turn: Turn | str) -> Offers:
        """ROUTE for a model: the few tools worth their price with their terms, or why there are none.

        Under a profile without prices it goes by `ehrr`.
        """
        if self._offering is None:
            self._offering = self._offering_of(self.catalog)
        return await self._offering.offers(_turn(turn))

    def observe(self, outcome: Outcome) -> None:
        """What came of a call: this process's routing goes by it from the next turn on."""
        self._economics.knowledge.observe(outcome)
        if self._resting is not None:
            self._resting.observe(outcome)

    async def warm(self, progress: Progress | None = None) -> None:
        """Build the indexes now, rather than with the first turn."""
        if self.profile.is_priced:
            await self._economics.knowledge.refresh()
        await self._router.warm(progress)

    async def vectors(self) -> Floats:
        """One vector a tool, of what it is for and how it does it: shape (n, d), rows of length 1, in catalog order."""
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
        """The tool of a call the model made; raises ToolNotAvailable or ArgumentsInvalid, and says so in an event.

        ``admit`` is the gate: the tool that a call means, if it may be called.
        """
        return self.admit(call, lambda: admit(call, decision))

    def admit(self, call: Call, find: Callable[[], ToolId]) -> ToolId:
        """As `check`, for a gate that goes by something else than a decision."""
        try:
            tool = find()
            if tool not in self.catalog:
                raise ToolNotAvailable(call.name, [], remedy="Its server is gone; route the turn again.")
            check_arguments(self.catalog[tool], call.arguments)
        except PegboardError as error:
            self._events.emit(CallRejected(at=self._clock.time(), tool=call.name, reason=error.code))
            raise
        return tool

    def replace_catalog(self, catalog: Catalog) -> None:
        """Serve this catalog from the next turn on. What was embedded before is not embedded again."""
        self._router = self._router_of(catalog)

    def _router_of(self, catalog: Catalog) -> Router:
        self._retrievers = [_retriever(catalog, space) for space in self._spaces]
        ways = self._ways(self._spaces)
        self._offering = None
        self._eligibility = Eligibility(catalog.tools, self._rules, self._resting)
        return Router(
            catalog,
            *ways,
            eligibility=self._eligibility,
            loader=SchemaLoader(self._source or catalog),
            events=self._events,
            clock=self._clock,
            always_available=self._pinned(catalog),
            pricing=self._worth_of(catalog),
        )

    def _worth_of(self, catalog: Catalog) -> Worth | None:
        if self.profile.is_priced:
            return Pricing(catalog, self._economics)
        ties = self._economics.near_ties > 0 and self.profile.scale == "probability"
        return NearTies(catalog, self._economics) if ties else None

    def _offering_of(self, catalog: Catalog) -> Offering:
        spaces = self._spaces
        if not self.profile.is_priced:
            spaces = [replace(space, profile=PROFILES["ehrr"]) for space in spaces]
        return Offering(
            catalog,
            *self._ways(spaces),
            pricing=Pricing(catalog, self._economics),
            eligibility=self._eligibility,
            events=self._events,
            clock=self._clock,
        )

    @property
    def _spaces(self) -> list[Space]:
        return [self._space] if self._fallback is None else [self._space, self._fallback]

    def _ways(self, spaces: Sequence[Space]) -> list[Way]:
        return [
            self._way(space, each, last=space is spaces[-1])
            for space, each in zip(spaces, self._retrievers, strict=True)
        ]

    def _way(self, space: Space, retriever: Retriever, *, last: bool) -> Way:
        return Way(
            profile=space.profile,
            ranker=ranker(space.profile.ranker, retriever, patient=self._patient, fusions=space.fusions, last=last),
            encoder=space.documents,
        )

    def _pinned(self, catalog: Catalog) -> list[ToolId]:
        return [
            tool.id
            for tool in catalog.tools
            if any(fnmatchcase(str(tool.id), pattern) or tool.name == pattern for pattern in self._always_available)
        ]


Board = RoutingBoard
"""Its name where no other board is near."""


def _retriever(catalog: Catalog, space: Space) -> Retriever:
    return Retriever(
        catalog.tools, catalog.servers, documents=space.documents, queries=space.queries, index=space.index
    )


def _turn(turn: Turn | str) -> Turn:
    return Turn.ask(turn) if isinstance(turn, str) else turn


def route_now(board: Board, turn: Turn | str) -> Decision:
    """`Board.route` where there is no event loop."""
    return asyncio.run(board.route(turn))
