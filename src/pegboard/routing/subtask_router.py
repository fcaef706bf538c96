"""ROUTE as a model calls it (EHRR algorithm 2): from a subtask to the best tools worth their price, with their terms.

subtask ─► eligible ─► scores ─► price ─► the best n ─► Offers
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pegboard.catalog import Catalog
from pegboard.events import RouteDecided
from pegboard.model import Mask, Scores, Turn
from pegboard.protocols import Clock, EventSink
from pegboard.retrieval import QUERIES
from pegboard.routing import select
from pegboard.routing.decisions import vector_hash
from pegboard.routing.economics.offers import LATER, REFINE, Offers, no_offers, offers_of
from pegboard.routing.economics.price_stage import Pricing
from pegboard.routing.eligibility import Eligibility, Eligible
from pegboard.routing.encoder_fallback import FallbackRanking, Ranking


class SubtaskRouter:
    """Offers the tools of one catalog snapshot under a profile with two layers."""

    def __init__(
        self,
        catalog: Catalog,
        ranking: Ranking,
        fallback: Ranking | None = None,
        *,
        pricing: Pricing,
        eligibility: Eligibility,
        events: EventSink,
        clock: Clock,
    ) -> None:
        self._catalog = catalog
        self._profile = ranking.profile
        self._rankings = FallbackRanking(ranking, fallback)
        self._pricing = pricing
        self._eligibility = eligibility
        self._events = events
        self._clock = clock
        self._none = np.zeros(len(catalog), np.bool_)

    async def offers(self, turn: Turn) -> Offers:
        """The best n tools for the turn's query, without always-available tools, which the model already has."""
        started = self._clock.monotonic()
        query = QUERIES[self._profile.query](turn)
        eligible = self._eligibility.of(turn)
        scores, ranking = await self._rankings.relevance(query, eligible.offered)
        if scores is None:
            return self._unknown(query)
        priced = await self._pricing.price(scores, eligible.offered, turn)
        chosen = self._chosen(priced.scores, priced.among)
        self._events.emit(self._event(turn, priced.scores, chosen, eligible, ranking, started))
        if not chosen:
            none = no_offers(priced, self._catalog, max_price=turn.max_price, deadline=turn.deadline)
            return replace(none, why=(*none.why, *self._left_alone(eligible)))
        return Offers(tools=offers_of(priced, self._catalog, chosen), why=self._left_alone(eligible))

    def _chosen(self, scores: Scores, among: Mask) -> list[int]:
        """Eq. 9, within the profile's other limits."""
        tokens = self._catalog.token_counts
        selection = select.choose(scores, among, pinned=self._none, tokens=tokens, profile=self._profile)
        return [int(place) for place in selection.chosen]

    def _unknown(self, query: str) -> Offers:
        if not len(self._catalog):
            return Offers(why=("There are no tools here.",), remedies=(LATER,))
        if not query.strip():
            return Offers(why=("The subtask is empty.",), remedies=(REFINE,))
        return Offers(why=("Tools cannot be ranked now, because no encoder answers.",), remedies=(LATER,))

    def _left_alone(self, eligible: Eligible) -> tuple[str, ...]:
        places = np.flatnonzero(eligible.withheld).tolist()
        servers = sorted({self._catalog.tools[place].server for place in places})
        return tuple(f"Server {server} failed repeatedly and is not used for a while." for server in servers)

    def _event(
        self, turn: Turn, scores: Scores, chosen: list[int], eligible: Eligible, ranking: Ranking, started: float
    ) -> RouteDecided:
        tools = self._catalog.tools
        return RouteDecided(
            at=self._clock.time(),
            turn_id=turn.id,
            profile=self._profile.name,
            query_embedding_hash=vector_hash(scores.query_vector),
            candidates=tuple(str(tools[place].id) for place in chosen),
            scores={str(tools[place].id): round(float(scores.values[place]), 4) for place in chosen},
            gated_out_by_state=tuple(str(tools[place].id) for place in np.flatnonzero(eligible.gated_out_by_state)),
            active_set=tuple(str(tools[place].id) for place in sorted(chosen)),
            phase1_tokens=0,
            phase2_tokens=sum(self._catalog.token_counts[place] for place in chosen),
            latency_ms=(self._clock.monotonic() - started) * 1000,
            encoder=ranking.encoder_of(scores),
        )
