"""The board: every tool an agent could use, and the one call that picks those it needs now."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from pegboard.catalog import Catalog
from pegboard.errors import PegboardError, ToolNotAvailable
from pegboard.events import CallRejected
from pegboard.model import Call, Candidate, Decision, Floats, Scores, ToolId, Turn
from pegboard.retrieval import Progress, Retriever, ranker
from pegboard.retrieval.fusion import Fusion
from pegboard.routing import Eligibility, Profile, Router, Rule, SchemaLoader, check_arguments, check_available
from pegboard.seams import Clock, DefinitionSource, Encoder, EventSink, Filter

LOGGER = logging.getLogger(__name__)


class Board:
    """Routes turns over a catalog that may change while it serves.

    A turn sees one snapshot from beginning to end; a changed catalog serves the next turn.
    Make one with `pegboard.build`.
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
    ) -> None:
        self._documents = documents
        self._queries = queries
        self._events = events
        self._clock = clock
        self._rules = tuple(rules)
        self._always_available = tuple(always_available)
        self._source = source
        self._patient = patient
        self._fusions = fusions
        self._profile = profile
        self._router = self._router_of(catalog)

    @property
    def catalog(self) -> Catalog:
        return self._router.catalog

    @property
    def profile(self) -> Profile:
        return self._profile

    async def route(self, turn: Turn | str, where: Filter | None = None) -> Decision:
        """The tools of a turn: what is active, what is reachable, and why; of those that pass ``where``."""
        return await self._router.route(_turn(turn), where)

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

    async def warm(self, progress: Progress | None = None) -> None:
        """Build the indexes now, rather than with the first turn."""
        await self._router.ranker.warm(progress)

    async def vectors(self) -> Floats:
        """One vector a tool, of what it is for and how it does it: shape (n, d), rows of length 1, in catalog order."""
        return (await self._retriever.meanings()).vectors

    def check(self, call: Call, decision: Decision) -> ToolId:
        """The tool of a call the model made; raises ToolNotAvailable or ArgumentsInvalid, and says so in an event."""
        try:
            tool = check_available(call, decision)
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
        self._retriever = Retriever(catalog.tools, catalog.servers, documents=self._documents, queries=self._queries)
        return Router(
            catalog,
            self._profile,
            ranker(self._profile.ranker, self._retriever, patient=self._patient, fusions=self._fusions),
            eligibility=Eligibility(catalog.tools, self._rules),
            loader=SchemaLoader(self._source or catalog),
            events=self._events,
            clock=self._clock,
            always_available=self._pinned(catalog),
        )

    def _pinned(self, catalog: Catalog) -> list[ToolId]:
        return [
            tool.id
            for tool in catalog.tools
            if any(fnmatchcase(str(tool.id), pattern) or tool.name == pattern for pattern in self._always_available)
        ]


def _turn(turn: Turn | str) -> Turn:
    return Turn.ask(turn) if isinstance(turn, str) else turn


def route_now(board: Board, turn: Turn | str) -> Decision:
    """`Board.route` where there is no event loop."""
    return asyncio.run(board.route(turn))
