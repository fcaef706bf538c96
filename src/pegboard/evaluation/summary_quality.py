"""How summaries change retrieval: the ranking and the gate of the profile `attention` over one catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pegboard.catalog import Catalog
from pegboard.compose import Parts, build_routing
from pegboard.evaluation import ranking_metrics
from pegboard.evaluation.datasets import Query
from pegboard.evaluation.ranking_metrics import Goals, Interval
from pegboard.model import Candidate, ToolId
from pegboard.retrieval import CachedEncoder, Progress
from pegboard.settings import Settings, SummariesSettings
from pegboard.stores import MemoryEmbeddings

K = 5
MOST = 10
"""k of `attention`."""
THRESHOLDS = tuple(round(0.10 + 0.02 * step, 2) for step in range(21))
"""Tool Attention's sweep of θ (§5.2)."""
SEED = 20260728
METRICS = ("f1@5", "recall@5", "mrr")
ATTENTION: Mapping[str, Any] = {
    "profile": "attention",
    **dict.fromkeys(("k", "threshold", "recall", "budget", "pool")),
    "summaries": SummariesSettings(),
}
"""Settings for Tool Attention's profile over the catalog's own summaries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval:
    """``rows`` has the values of each metric, one per query. ``f1`` is the mean F1 behind the gate at the best
    ``theta``.

    ``tokens`` is the mean length of a summary.
    """

    rows: Mapping[str, Sequence[float]]
    f1: float
    theta: float
    tokens: float

    def mean(self, metric: str) -> float:
        return float(np.mean(self.rows[metric]))

    def gain(self, before: Retrieval, metric: str = "f1@5") -> Interval:
        """The paired difference from another retrieval of the same queries."""
        difference = np.subtract(self.rows[metric], before.rows[metric]).tolist()
        return ranking_metrics.bootstrap(difference, np.random.default_rng(SEED))

    def payload(self) -> dict[str, float]:
        found = {metric: round(self.mean(metric), 4) for metric in METRICS}
        return found | {"f1_gated": round(self.f1, 4), "theta": self.theta, "tokens": round(self.tokens, 1)}


def mean_tokens(catalog: Catalog, texts: Sequence[str]) -> float:
    return sum(catalog.counter.count(texts)) / max(1, len(texts))


def remembering(parts: Parts) -> Parts:
    """The same parts, with a cache so that each query is embedded once for all catalogs."""
    return replace(parts, encoder=CachedEncoder(parts.encoder, MemoryEmbeddings(1_000_000)))


async def retrieval(
    catalog: Catalog, queries: Sequence[Query], settings: Settings, parts: Parts, progress: Progress
) -> Retrieval:
    """Run every query over the catalog with its current summaries."""
    board = build_routing(settings.model_copy(update=ATTENTION), catalog, parts=parts)
    await board.warm()
    canonical = ranking_metrics.canonical_ids(catalog)
    rows: dict[str, list[float]] = {metric: [] for metric in METRICS}
    gated: list[list[float]] = []
    for done, query in enumerate(queries, start=1):
        wanted = ranking_metrics.goals(query.relevant, query.any_of, canonical)
        ranking = await board.rank(query.text)
        for metric, value in _scores(wanted, ranking, canonical).items():
            rows[metric].append(value)
        gated.append([_gated_f1(wanted, ranking, canonical, theta) for theta in THRESHOLDS])
        progress(done, len(queries))
    means = np.mean(gated, axis=0)
    best = int(np.argmax(means))
    tokens = mean_tokens(catalog, [tool.summary for tool in catalog.tools])
    return Retrieval(rows=rows, f1=float(means[best]), theta=THRESHOLDS[best], tokens=tokens)


def _scores(wanted: Goals, ranking: Sequence[Candidate], canonical: Mapping[ToolId, int]) -> dict[str, float]:
    found = ranking_metrics.places(wanted, [canonical[each.tool] for each in ranking])
    return {
        "f1@5": ranking_metrics.f1(found, len(wanted), K),
        "recall@5": ranking_metrics.recall(found, len(wanted), K),
        "mrr": ranking_metrics.reciprocal_rank(found),
    }


def _gated_f1(wanted: Goals, ranking: Sequence[Candidate], canonical: Mapping[ToolId, int], theta: float) -> float:
    """F1 of at most k tools with scores at or above θ; copies of a tool count once."""
    passed = list(dict.fromkeys(canonical[each.tool] for each in ranking[:MOST] if each.score >= theta))
    return ranking_metrics.f1(ranking_metrics.places(wanted, passed), len(wanted), len(passed))
