"""What summaries do to retrieval: the profile `attention` over one catalog, as it ranks and as it gates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pegboard.bench import metrics
from pegboard.bench.datasets import Query
from pegboard.bench.metrics import Goals, Interval
from pegboard.catalog import Catalog
from pegboard.compose import Parts, build
from pegboard.model import Candidate, ToolId
from pegboard.retrieval import CachedEncoder, Progress
from pegboard.settings import Settings, SummariesSettings
from pegboard.stores import MemoryEmbeddings

K = 5
MOST = 10
"""k of `attention`."""
THRESHOLDS = tuple(round(0.10 + 0.02 * step, 2) for step in range(21))
"""The seed's sweep of θ (000 §5.2)."""
SEED = 20260728
METRICS = ("f1@5", "recall@5", "mrr")
ATTENTION: Mapping[str, Any] = {
    "profile": "attention",
    **dict.fromkeys(("k", "threshold", "recall", "budget", "pool")),
    "summaries": SummariesSettings(),
}
"""The profile as the seed has it, over summaries that are there already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval:
    """``rows`` hold each metric by query. ``f1`` is the mean F1 of what the gate lets through at the best ``theta``.

    ``tokens`` is the mean length of a summary.
    """

    rows: Mapping[str, Sequence[float]]
    f1: float
    theta: float
    tokens: float

    def mean(self, metric: str) -> float:
        return float(np.mean(self.rows[metric]))

    def gain(self, before: Retrieval, metric: str = "f1@5") -> Interval:
        """The paired difference to another retrieval of the same queries."""
        difference = np.subtract(self.rows[metric], before.rows[metric]).tolist()
        return metrics.bootstrap(difference, np.random.default_rng(SEED))

    def payload(self) -> dict[str, float]:
        found = {metric: round(self.mean(metric), 4) for metric in METRICS}
        return found | {"f1_gated": round(self.f1, 4), "theta": self.theta, "tokens": round(self.tokens, 1)}


def mean_tokens(catalog: Catalog, texts: Sequence[str]) -> float:
    return sum(catalog.counter.count(texts)) / max(1, len(texts))


def remembering(parts: Parts) -> Parts:
    """The same parts, with an encoder that embeds a query once for all catalogs."""
    return replace(parts, encoder=CachedEncoder(parts.encoder, MemoryEmbeddings(1_000_000)))


async def retrieval(
    catalog: Catalog, queries: Sequence[Query], settings: Settings, parts: Parts, progress: Progress
) -> Retrieval:
    """Every query over the catalog with the summaries it has."""
    board = build(settings.model_copy(update=ATTENTION), catalog, parts=parts)
    await board.warm()
    canonical = metrics.canonical_ids(catalog)
    rows: dict[str, list[float]] = {metric: [] for metric in METRICS}
    gated: list[list[float]] = []
    for done, query in enumerate(queries, start=1):
        wanted = metrics.goals(query.relevant, query.any_of, canonical)
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
    found = metrics.places(wanted, [canonical[each.tool] for each in ranking])
    return {
        "f1@5": metrics.f1(found, len(wanted), K),
        "recall@5": metrics.recall(found, len(wanted), K),
        "mrr": metrics.reciprocal_rank(found),
    }


def _gated_f1(wanted: Goals, ranking: Sequence[Candidate], canonical: Mapping[ToolId, int], theta: float) -> float:
    """F1 of at most k tools at or above θ; copies of one tool count once."""
    passed = list(dict.fromkeys(canonical[each.tool] for each in ranking[:MOST] if each.score >= theta))
    return metrics.f1(metrics.places(wanted, passed), len(wanted), len(passed))
