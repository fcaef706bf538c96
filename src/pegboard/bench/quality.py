"""Ranking quality of every method on every set, with bootstrap intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pegboard.bench import metrics
from pegboard.bench.datasets import ToolSet
from pegboard.bench.methods import BASELINES, Search
from pegboard.bench.metrics import Interval
from pegboard.retrieval import Progress

PAIRED = "recall@5"
OURS = "hybrid"

Rows = Mapping[str, Mapping[str, Sequence[float]]]
"""Method to metric to one value a query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """Means and intervals by (metric, method), and ours minus the best baseline, query by query."""

    name: str
    queries: int
    means: Mapping[tuple[str, str], Interval]
    baseline: str
    gain: Interval
    rows: Rows = field(repr=False)

    def figures(self) -> dict[str, float]:
        found = {f"{metric}/{self.name}/{method}": each.mean for (metric, method), each in self.means.items()}
        gain = {"gain": self.gain.mean, "gain_low": self.gain.low, "gain_high": self.gain.high}
        return found | {f"{PAIRED}_{suffix}/{self.name}/{OURS}": value for suffix, value in gain.items()}

    def table(self) -> dict[str, object]:
        return {
            "queries": self.queries,
            "best_baseline": self.baseline,
            "intervals_95": {
                f"{metric}/{method}": [round(each.low, 4), round(each.high, 4)]
                for (metric, method), each in self.means.items()
            },
        }


async def measure(dataset: ToolSet, searches: Mapping[str, Search], progress: Progress, *, seed: int) -> Quality:
    """Every query through every method."""
    canonical = metrics.canonical_ids(dataset.catalog)
    goals = [metrics.goals(query.relevant, query.any_of, canonical) for query in dataset.queries]
    rows: dict[str, dict[str, list[float]]] = {method: {} for method in searches}
    for done, (query, wanted) in enumerate(zip(dataset.queries, goals, strict=True), start=1):
        for method, search in searches.items():
            for metric, value in metrics.score(wanted, await search(query.text), canonical).items():
                rows[method].setdefault(metric, []).append(value)
        progress(done, len(goals))
    return summarize(dataset.name, rows, seed=seed)


def summarize(name: str, rows: Rows, *, seed: int) -> Quality:
    baseline = max((method for method in BASELINES if method in rows), key=lambda method: _mean(rows[method][PAIRED]))
    differences = np.subtract(rows[OURS][PAIRED], rows[baseline][PAIRED])
    return Quality(
        name=name,
        queries=len(differences),
        means={
            (metric, method): metrics.bootstrap(values, np.random.default_rng(seed))
            for method, of_method in rows.items()
            for metric, values in of_method.items()
        },
        baseline=baseline,
        gain=metrics.bootstrap(differences.tolist(), np.random.default_rng(seed)),
        rows=rows,
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
