"""One turn, from conversation to tools. Read `Router.route` from top to bottom: that is the whole pipeline.

    turn ─► query ─► eligible (a mask) ─► scores ─► select ─► load ─► Decision

Pricing joins between scores and selection for the economics profile; every other profile is free of charge.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from pegboard.catalog import Catalog
from pegboard.errors import EncoderError
from pegboard.model import Candidate, Decision, JsonObject, Scores, ToolId, Turn
from pegboard.retrieval import QUERIES, Ranker
from pegboard.routing import select
from pegboard.routing.eligibility import Eligibility, Eligible
from pegboard.routing.loader import SchemaLoader
from pegboard.routing.pool import Pool, summary_pool
from pegboard.routing.profiles import Profile
from pegboard.routing.record import candidates, decide, route_decided
from pegboard.routing.select import Selection
from pegboard.seams import Clock, EventSink, Filter

LOGGER = logging.getLogger(__name__)


SHOWN = 20
"""Candidates that a decision and its event carry, besides the always-available tools; more where more are active."""


class Router:
    """Routes the turns of one catalog snapshot under one profile."""

    def __init__(
        self,
        catalog: Catalog,
        profile: Profile,
        ranker: Ranker,
        *,
        eligibility: Eligibility,
        loader: SchemaLoader,
        events: EventSink,
        clock: Clock,
        always_available: Sequence[ToolId] = (),
    ) -> None:
        self.catalog = catalog
        self.profile = profile
        self.ranker = ranker
        self._eligibility = eligibility
        self._loader = loader
        self._events = events
        self._clock = clock
        self.pinned = tuple(always_available)
        self._pinned = np.isin(np.arange(len(catalog)), [catalog.position[tool] for tool in always_available])
        self._pool = lru_cache(maxsize=16)(self._render_pool)
        self._reachable = lru_cache(maxsize=16)(self._ids)

    async def route(self, turn: Turn, where: Filter | None = None) -> Decision:
        """The tools of a turn, of those that pass ``where``.

        Never raises for want of relevance: what cannot be ranked passes (it fails open).
        """
        started = self._clock.monotonic()
        query = QUERIES[self.profile.query](turn)
        eligible = self._eligibility.of(turn, where)
        scores = await self._score(query)
        selection = self._select(scores, eligible)
        phase1, phase2 = await self._load(selection, eligible)
        decision = decide(
            turn,
            self.profile,
            self.catalog,
            query=query,
            scores=scores,
            selection=selection,
            shown=len(self.pinned) + SHOWN,
            gated_out=eligible.gated_out_by_state,
            reachable=self._reachable(eligible.allowed.tobytes()),
            phase1=phase1,
            phase2=phase2,
            latency_ms=(self._clock.monotonic() - started) * 1000,
        )
        self._events.emit(route_decided(decision, scores, at=self._clock.time()))
        return decision

    def allowed(self, turn: Turn) -> frozenset[ToolId]:
        """What the caller may use at this point, whatever the turn is about."""
        return self._reachable(self._eligibility.of(turn).allowed.tobytes())

    def permitted(self, turn: Turn) -> frozenset[ToolId]:
        """What the caller has a right to, whatever the state of the work: it does not change during a session."""
        return self._reachable(self._eligibility.of(turn).permitted.tobytes())

    def pool(self, turn: Turn) -> Pool:
        """The summary of everything the caller has a right to (phase 1)."""
        return self._pool(self._eligibility.of(turn).permitted.tobytes())

    async def scores(self, turn: Turn) -> Scores | None:
        """Of every tool in catalog order; None where nothing can be said about relevance."""
        return await self._score(QUERIES[self.profile.query](turn))

    async def rank(self, turn: Turn) -> tuple[Candidate, ...]:
        """Every eligible tool, best first, with no gate."""
        scores = await self.scores(turn)
        allowed = self._eligibility.of(turn).allowed
        order = np.flatnonzero(allowed) if scores is None else select.best_first(scores.values, allowed)
        return candidates(self.catalog.tools, order, scores)

    async def _score(self, query: str) -> Scores | None:
        """None where nothing can be said about relevance: no text (P4), or no encoder."""
        if not query.strip() or not len(self.catalog):
            return None
        try:
            return await self.ranker.score(query)
        except EncoderError:
            LOGGER.exception("The encoder failed; every eligible tool passes")
            return None

    def _select(self, scores: Scores | None, eligible: Eligible) -> Selection:
        if scores is None:
            return select.everything(eligible.allowed)
        return select.choose(
            scores.values,
            eligible.allowed,
            pinned=self._pinned,
            tokens=self.catalog.token_counts,
            profile=self.profile,
        )

    async def _load(self, selection: Selection, eligible: Eligible) -> tuple[Pool, tuple[JsonObject, ...]]:
        """Phase 1 shows what the caller may use; phase 2 has the active tools, in catalog order (P18)."""
        active = [self.catalog.tools[place].id for place in np.sort(selection.chosen)]
        return self._pool(eligible.allowed.tobytes()), await self._loader.load(active)

    def _render_pool(self, allowed: bytes) -> Pool:
        tools = [tool for tool, shown in zip(self.catalog.tools, allowed, strict=True) if shown]
        return summary_pool(tools, self.catalog.servers, self.catalog.counter, self.profile.pool)

    def _ids(self, allowed: bytes) -> frozenset[ToolId]:
        return frozenset(tool.id for tool, shown in zip(self.catalog.tools, allowed, strict=True) if shown)
