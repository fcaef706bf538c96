"""One turn, from conversation to tools. Read `Router.route` from top to bottom: that is the whole pipeline.

turn ─► query ─► eligible (a mask) ─► scores ─► price ─► select ─► load ─► Decision; only `ehrr` prices
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np

from pegboard.catalog import Catalog
from pegboard.model import Candidate, Choices, Decision, JsonObject, Mask, Scores, ToolId, Turn
from pegboard.retrieval import QUERIES, Progress
from pegboard.retrieval.mentions import NOTHING, Mentions
from pegboard.routing import select
from pegboard.routing.economics.pricing import Priced, Pricing, Worth, worth
from pegboard.routing.eligibility import Eligibility, Eligible
from pegboard.routing.loader import SchemaLoader
from pegboard.routing.pool import Pool
from pegboard.routing.profiles import Profile
from pegboard.routing.record import candidates, decide, route_decided
from pegboard.routing.select import Selection
from pegboard.routing.standby import Way, Ways
from pegboard.routing.visible import Visible
from pegboard.seams import Clock, EventSink, Filter

SHOWN = 20
"""Candidates that a decision and its event carry, besides the always-available tools; more where more are active."""


class Router:
    """Routes the turns of one catalog snapshot under one profile.

    ``fallback`` has the same profile as it is for another encoder, which answers while the first does not.
    """

    def __init__(
        self,
        catalog: Catalog,
        way: Way,
        fallback: Way | None = None,
        *,
        pricing: Worth | None = None,
        eligibility: Eligibility,
        loader: SchemaLoader,
        events: EventSink,
        clock: Clock,
        always_available: Sequence[ToolId] = (),
    ) -> None:
        self.catalog = catalog
        self.profile = way.profile
        self._ways = Ways(way, fallback)
        self._pricing = pricing
        self._eligibility = eligibility
        self._loader = loader
        self._events = events
        self._clock = clock
        self.pinned = tuple(always_available)
        self._pinned = np.isin(np.arange(len(catalog)), [catalog.position[tool] for tool in always_available])
        self._shown = len(self.pinned) + SHOWN
        self._visible = Visible(catalog, self.profile.pool)
        self._found: Mentions | None = None

    async def route(self, turn: Turn, where: Filter | None = None) -> Decision:
        """The tools of a turn, of those that pass ``where``.

        Never raises for want of relevance: what cannot be ranked passes (it fails open).
        """
        started = self._clock.monotonic()
        query = QUERIES[self.profile.query](turn)
        eligible = self._eligibility.of(turn, where)
        scores, way = await self._ways.relevance(query, eligible.offered)
        scores, affordable = await worth(self._pricing, scores, eligible.offered, turn)
        selection = self._select(query, scores, affordable | (self._pinned & eligible.offered), way.profile)
        phase1, phase2 = await self._load(selection, eligible)
        decision = decide(
            turn,
            way.profile,
            self.catalog,
            query=query,
            scores=scores,
            selection=selection,
            shown=self._shown,
            gated_out=eligible.gated_out_by_state,
            left_alone=eligible.left_alone,
            reachable=self._visible.ids(eligible.allowed),
            phase1=phase1,
            phase2=phase2,
            latency_ms=(self._clock.monotonic() - started) * 1000,
            encoder=way.encoder_of(scores),
        )
        self._events.emit(route_decided(decision, scores, at=self._clock.time()))
        return decision

    async def choices(self, turn: Turn, where: Filter | None = None) -> Choices:
        """What `route` makes of a turn that was served before, with nothing loaded and no event."""
        eligible = self._eligibility.of(turn, where)
        query = QUERIES[self.profile.query](turn)
        scores, way = await self._ways.relevance(query, eligible.offered)
        scores, affordable = await worth(self._pricing, scores, eligible.offered, turn)
        selection = self._select(query, scores, affordable | (self._pinned & eligible.offered), way.profile)
        ranked = selection.order[: max(len(selection.chosen), self._shown)]
        return Choices(
            active=tuple(self.catalog.tools[place].id for place in np.sort(selection.chosen)),
            ranked=tuple(self.catalog.tools[place].id for place in ranked),
        )

    async def warm(self, progress: Progress | None = None) -> None:
        """Build the indexes. Raises EncoderError where no encoder works."""
        await asyncio.to_thread(lambda: self._mentions)
        await self._ways.warm(progress)

    def allowed(self, turn: Turn) -> frozenset[ToolId]:
        """What the caller may use at this point, whatever the turn is about."""
        return self._visible.ids(self._eligibility.of(turn).allowed)

    def permitted(self, turn: Turn) -> frozenset[ToolId]:
        """What the caller has a right to, whatever the state of the work: it does not change during a session."""
        return self._visible.ids(self._eligibility.of(turn).permitted)

    def pool(self, turn: Turn) -> Pool:
        """The summary of everything the caller has a right to (phase 1)."""
        return self._visible.pool(self._eligibility.of(turn).permitted)

    async def scores(self, turn: Turn) -> Scores | None:
        """Of every tool in catalog order; None where nothing can be said about relevance."""
        return (await worth(self._pricing, *await self._scored(turn), turn))[0]

    async def priced(self, turn: Turn) -> Priced | None:
        """Every term of EHRR's two layers; None under other profiles, and where relevance is unknown."""
        scores, allowed = await self._scored(turn)
        pricing = self._pricing if isinstance(self._pricing, Pricing) else None
        return None if scores is None or pricing is None else await pricing.price(scores, allowed, turn)

    async def rank(self, turn: Turn) -> tuple[Candidate, ...]:
        """Every eligible tool, best first, with no gate."""
        scores, allowed = await self.scores(turn), self._eligibility.of(turn).allowed
        order = np.flatnonzero(allowed) if scores is None else select.best_first(scores.values, allowed)
        return candidates(self.catalog.tools, order, scores)

    async def _scored(self, turn: Turn) -> tuple[Scores | None, Mask]:
        allowed, query = self._eligibility.of(turn).allowed, QUERIES[self.profile.query](turn)
        return (await self._ways.relevance(query, allowed))[0], allowed

    def _select(self, query: str, scores: Scores | None, among: Mask, profile: Profile) -> Selection:
        if scores is None:
            return select.everything(among)
        return select.choose(
            scores,
            among,
            pinned=self._pinned,
            tokens=self.catalog.token_counts,
            profile=profile,
            mentioned=self._mentions.of(query) if profile.ranker == "hybrid" else NOTHING,
        )

    @property
    def _mentions(self) -> Mentions:
        if self._found is None:
            self._found = Mentions(self.catalog.tools)
        return self._found

    async def _load(self, selection: Selection, eligible: Eligible) -> tuple[Pool, tuple[JsonObject, ...]]:
        """Phase 1 shows what the caller may use; phase 2 has the active tools, in catalog order (P18)."""
        active = [self.catalog.tools[place].id for place in np.sort(selection.chosen)]
        return self._visible.pool(eligible.allowed), await self._loader.load(active)
