"""One turn, from conversation to tools. `Router._scored` is the scoring pass; `_routed` makes a decision of it.

turn ─► query ─► eligible (a mask) ─► scores ─► habits ─► price ─► select ─► load ─► Decision; only `ehrr` prices
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from pegboard.catalog import Catalog
from pegboard.events import RouteDecided
from pegboard.model import Candidate, Choices, Decision, JsonObject, Mask, Scores, ToolId, Turn
from pegboard.protocols import Clock, EventSink, Filter
from pegboard.retrieval import QUERIES, Progress
from pegboard.retrieval.index_thread import on_index_thread
from pegboard.retrieval.mentions import NOTHING, Mentions
from pegboard.routing import select
from pegboard.routing.decisions import candidates, decide, route_decided
from pegboard.routing.economics.price_stage import Priced, PriceStage, StageResult, apply_stage
from pegboard.routing.eligibility import Eligibility, Eligible
from pegboard.routing.encoder_fallback import FallbackRanking, Ranking
from pegboard.routing.explain import Explanation
from pegboard.routing.habit_learner import HabitLearner
from pegboard.routing.loader import SchemaLoader
from pegboard.routing.pool import Pool, VisibleTools
from pegboard.routing.profiles import Profile
from pegboard.routing.select import Selection

SHOWN = 20
"""Candidates in a decision and its event, besides the always-available tools; more if more are active."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringPass:
    """One scoring pass over the catalog, and its selection."""

    query: str
    eligible: Eligible
    ranking: Ranking
    scores: Scores | None
    priced: Priced | None
    selection: Selection


class Router:
    """Routes the turns of one catalog snapshot under one profile.

    ``fallback`` is the same profile for another encoder, which answers while the first one fails; ``mentions`` gives
    what requests name in this catalog, if that is known elsewhere.
    """

    def __init__(
        self,
        catalog: Catalog,
        ranking: Ranking,
        fallback: Ranking | None = None,
        *,
        pricing: PriceStage | None = None,
        eligibility: Eligibility,
        loader: SchemaLoader,
        events: EventSink,
        clock: Clock,
        always_available: Sequence[ToolId] = (),
        learner: HabitLearner | None = None,
        mentions: Callable[[], Mentions] | None = None,
        texts: bool = False,
    ) -> None:
        self.catalog = catalog
        self.profile = ranking.profile
        self._rankings = FallbackRanking(ranking, fallback)
        self._pricing = pricing
        self._learner = learner
        self._texts = texts
        self._eligibility = eligibility
        self._loader = loader
        self._events = events
        self._clock = clock
        self.pinned = tuple(always_available)
        self._pinned = np.zeros(len(catalog), np.bool_)
        self._pinned[[catalog.position[tool] for tool in always_available]] = True
        self._shown = len(self.pinned) + SHOWN
        self._visible = VisibleTools.of(catalog, self.profile.pool)
        self._mentions = mentions or cache(lambda: Mentions(catalog.tools))

    async def route(self, turn: Turn, where: Filter | None = None, *, shown: int = SHOWN) -> Decision:
        """The tools for a turn, among those that pass ``where``, with at least ``shown`` candidates if there are so
        many.

        Never raises because relevance is unknown: tools that cannot be ranked pass (fails open).
        """
        return (await self._routed(turn, where, shown))[0]

    async def unranked(self, turn: Turn) -> Decision:
        """All tools that the turn may use, in catalog order: no encoder is asked."""
        return (await self._routed(turn, None, ranked=False))[0]

    async def explain(self, turn: Turn) -> Explanation:
        """Like `route`, with everything that the decision is based on, from the same scoring pass."""
        decision, scored, event = await self._routed(turn, None)
        return Explanation(
            catalog=self.catalog,
            profile=scored.ranking.profile,
            pinned=self.pinned,
            decision=decision,
            order=self._candidates(scored.scores, scored.eligible.allowed),
            scores=scored.scores,
            priced=scored.priced,
            event=event,
        )

    async def choices(self, turn: Turn, where: Filter | None = None) -> Choices:
        """The choice of `route` for a turn that was served before, without loading definitions or emitting an event."""
        scored = await self._scored(turn, where)
        selection, scores = scored.selection, scored.scores
        ranked = selection.order[: max(len(selection.chosen), self._shown)]
        return Choices(
            active=tuple(self.catalog.tools[place].id for place in np.sort(selection.chosen)),
            ranked=tuple(self.catalog.tools[place].id for place in ranked),
            query=scored.query,
            candidates=candidates(self.catalog.tools, ranked, scores),
            comparable=bool(scored.ranking.encoder_of(scores)) and not scored.ranking.profile.by_rank,
        )

    async def warm(self, progress: Progress | None = None) -> None:
        """Build the indexes. Raises EncoderError if no encoder works."""
        await on_index_thread(len(self.catalog), self._mentions)
        await self._rankings.warm(progress)

    async def index_words(self) -> None:
        """Build the word indexes of the rankers that use any, unless they are there."""
        await self._rankings.index_words()

    def allowed(self, turn: Turn) -> frozenset[ToolId]:
        """The tools that the caller may use at this point, whatever the turn is about."""
        return self._visible.ids(self._eligibility.of(turn).allowed)

    def permitted(self, turn: Turn) -> frozenset[ToolId]:
        """The tools that the caller has a right to, whatever the agent's state; constant during a session."""
        return self._visible.ids(self._eligibility.of(turn).permitted)

    def pool(self, turn: Turn) -> Pool:
        """The summary of everything the caller has a right to (phase 1)."""
        return self._visible.pool(self._eligibility.of(turn).permitted)

    async def scores(self, turn: Turn) -> Scores | None:
        """The scores of every tool in catalog order; None if relevance is unknown."""
        return (await self._valued(turn)).scores

    async def priced(self, turn: Turn) -> Priced | None:
        """Every term of EHRR's two layers; None under other profiles or if relevance is unknown."""
        return (await self._valued(turn)).priced

    async def rank(self, turn: Turn) -> tuple[Candidate, ...]:
        """Every eligible tool, best first, without gating."""
        return self._candidates(await self.scores(turn), self._eligibility.of(turn).allowed)

    async def _routed(
        self, turn: Turn, where: Filter | None, shown: int = SHOWN, *, ranked: bool = True
    ) -> tuple[Decision, ScoringPass, RouteDecided]:
        started = self._clock.monotonic()
        scored = await self._scored(turn, where, ranked=ranked)
        eligible, scores = scored.eligible, scored.scores
        phase1, phase2 = await self._load(scored.selection, eligible)
        decision = decide(
            turn,
            scored.ranking.profile,
            self.catalog,
            query=scored.query,
            scores=scores,
            selection=scored.selection,
            shown=self._shown - SHOWN + shown,
            gated_out=eligible.gated_out_by_state,
            withheld=eligible.withheld,
            reachable=self._visible.ids(eligible.allowed),
            phase1=phase1,
            phase2=phase2,
            latency_ms=(self._clock.monotonic() - started) * 1000,
            encoder=scored.ranking.encoder_of(scores),
        )
        usual = max(len(decision.active), self._shown)
        told = replace(decision, candidates=decision.candidates[:usual]) if shown > SHOWN else decision
        event = route_decided(told, scores, at=self._clock.time(), texts=self._texts)
        self._events.emit(event)
        return decision, scored, event

    async def _scored(self, turn: Turn, where: Filter | None, *, ranked: bool = True) -> ScoringPass:
        eligible, query = self._eligibility.of(turn, where), QUERIES[self.profile.query](turn)
        relevance, ranking = await self._relevance(turn, query if ranked else "", eligible.offered)
        valued = await apply_stage(self._pricing, relevance, eligible.offered, turn)
        among = valued.among | (self._pinned & eligible.offered)
        selection = self._select(query, valued.scores, among, ranking.profile)
        return ScoringPass(
            query=query,
            eligible=eligible,
            ranking=ranking,
            scores=valued.scores,
            priced=valued.priced,
            selection=selection,
        )

    async def _valued(self, turn: Turn) -> StageResult:
        """Score and price every tool that the caller may use, without selection."""
        allowed, query = self._eligibility.of(turn).allowed, QUERIES[self.profile.query](turn)
        return await apply_stage(self._pricing, (await self._relevance(turn, query, allowed))[0], allowed, turn)

    async def _relevance(self, turn: Turn, query: str, among: Mask) -> tuple[Scores | None, Ranking]:
        """The scores of the ranking, as the use of the turn's habits taught."""
        scores, ranking = await self._rankings.relevance(query, among)
        if scores is None or self._learner is None:
            return scores, ranking
        encoder = ranking.encoder_of(scores)
        return self._learner.adjusted(turn.habits, query, scores, self.catalog.tools, among, encoder=encoder), ranking

    def _candidates(self, scores: Scores | None, allowed: Mask) -> tuple[Candidate, ...]:
        order = np.flatnonzero(allowed) if scores is None else select.best_first(scores.values, allowed)
        return candidates(self.catalog.tools, order, scores)

    def _select(self, query: str, scores: Scores | None, among: Mask, profile: Profile) -> Selection:
        if scores is None:
            return select.everything(among)
        return select.choose(
            scores,
            among,
            pinned=self._pinned,
            tokens=self.catalog.token_counts,
            profile=profile,
            mentioned=self._mentions().of(query) if profile.ranker == "hybrid" else NOTHING,
        )

    async def _load(self, selection: Selection, eligible: Eligible) -> tuple[Pool, tuple[JsonObject, ...]]:
        """Phase 1 is the pool of what the caller may use; phase 2 the active tools' definitions in catalog order
        (P18)."""
        active = [self.catalog.tools[place].id for place in np.sort(selection.chosen)]
        return self._visible.pool(eligible.allowed), await self._loader.load(active)
