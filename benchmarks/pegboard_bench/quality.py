"""Ranking quality of every method on every set, with bootstrap intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pegboard.evaluation import ranking_metrics
from pegboard.evaluation.datasets import ToolSet
from pegboard.evaluation.methods import Search
from pegboard.evaluation.ranking_metrics import Interval
from pegboard.retrieval import Progress
from pegboard_bench.peers import PeerRun

PAIRED = "recall@5"
OURS = "hybrid"
OWN = frozenset({"attention", "semantic", "keyword", "attention_ungated"})
"""Profiles of ours: what `hybrid` is compared with are the others."""

Row = Mapping[int, Mapping[str, float]]
"""The number of a query to metric to value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """Means and intervals by (metric, method); ours minus each other method, query by query, on ``PAIRED``."""

    name: str
    queries: int
    means: Mapping[tuple[str, str], Interval]
    gains: Mapping[str, Interval]
    asked: Mapping[str, int] = field(default_factory=dict)
    """Queries that a method saw, where those were a sample."""

    @property
    def rival(self) -> str:
        """The best of the others."""
        return min(self.gains, key=lambda method: self.gains[method].mean)

    @property
    def gain(self) -> Interval:
        return self.gains[self.rival]

    def figures(self) -> dict[str, float]:
        found = {f"{metric}/{self.name}/{method}": each.mean for (metric, method), each in self.means.items()}
        gain = {"gain": self.gain.mean, "gain_low": self.gain.low, "gain_high": self.gain.high}
        return found | {f"{PAIRED}_{suffix}/{self.name}/{OURS}": value for suffix, value in gain.items()}

    def table(self) -> dict[str, object]:
        return {
            "queries": self.queries,
            "sampled": dict(self.asked),
            "best_baseline": self.rival,
            "gains": {method: rounded(each) for method, each in self.gains.items()},
            "intervals_95": {f"{metric}/{method}": rounded(each)[1:] for (metric, method), each in self.means.items()},
        }


async def measure(dataset: ToolSet, searches: Mapping[str, Search], progress: Progress) -> dict[str, Row]:
    """Every query through every method."""
    canonical, goals = _goals(dataset)
    rows: dict[str, dict[int, dict[str, float]]] = {method: {} for method in searches}
    for number, query in enumerate(dataset.queries):
        for method, search in searches.items():
            rows[method][number] = ranking_metrics.score(goals[number], await search(query.text), canonical)
        progress(number + 1, len(goals))
    return dict(rows)


def measure_peers(dataset: ToolSet, runs: Mapping[str, PeerRun]) -> dict[str, Row]:
    """What peers have found, scored as ours is."""
    canonical, goals = _goals(dataset)
    return {
        method: {
            number: ranking_metrics.score(goals[number], ranking, canonical) for number, ranking in run.rankings.items()
        }
        for method, run in runs.items()
    }


def summarize(name: str, rows: Mapping[str, Row], *, seed: int) -> Quality:
    ours = rows[OURS]
    return Quality(
        name=name,
        queries=len(ours),
        means={
            (metric, method): ranking_metrics.bootstrap(
                [each[metric] for each in row.values()], np.random.default_rng(seed)
            )
            for method, row in rows.items()
            for metric in next(iter(row.values()))
        },
        gains={
            method: ranking_metrics.bootstrap(_differences(ours, row), np.random.default_rng(seed))
            for method, row in rows.items()
            if method != OURS and method not in OWN and not method.startswith(f"{OURS}_")
        },
        asked={method: len(row) for method, row in rows.items() if len(row) < len(ours)},
    )


def _goals(dataset: ToolSet) -> tuple[ranking_metrics.Canonical, list[ranking_metrics.Goals]]:
    canonical = ranking_metrics.canonical_ids(dataset.catalog)
    return canonical, [ranking_metrics.goals(query.relevant, query.any_of, canonical) for query in dataset.queries]


def _differences(ours: Row, other: Row) -> Sequence[float]:
    """Ours minus the other on each query that both saw."""
    return [ours[number][PAIRED] - values[PAIRED] for number, values in other.items()]


def rounded(each: Interval) -> list[float]:
    """Mean, low and high with four digits."""
    return [round(each.mean, 4), round(each.low, 4), round(each.high, 4)]
