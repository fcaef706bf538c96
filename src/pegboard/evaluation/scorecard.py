"""What a ranking of one labelled set is worth: means with intervals, and the queries that went worst."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pegboard.evaluation import ranking_metrics
from pegboard.evaluation.datasets import ToolSet
from pegboard.evaluation.ranking_metrics import Interval
from pegboard.model import ToolId

SEED = 20261124
SHOWN = 5
"""Tools that are shown of the ranking of a query that went badly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstQuery:
    """A query with its labels and the first tools of its ranking. ``places`` are the ranks, from 1, of the goals that
    the ranking reaches."""

    id: str
    text: str
    wanted: tuple[str, ...]
    first: tuple[str, ...]
    places: tuple[int, ...]
    recall: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorecard:
    """``means`` are recall@k, full@10, MRR and nDCG@5 with 95% bootstrap intervals over the queries."""

    queries: int
    means: Mapping[str, Interval]
    worst: tuple[WorstQuery, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "means": {
                name: {"mean": round(each.mean, 4), "low": round(each.low, 4), "high": round(each.high, 4)}
                for name, each in self.means.items()
            },
            "worst": [
                {
                    "id": each.id,
                    "query": each.text,
                    "wanted": list(each.wanted),
                    "first": list(each.first),
                    "places": list(each.places),
                    "recall@5": round(each.recall, 4),
                }
                for each in self.worst
            ],
        }


def scorecard(dataset: ToolSet, rankings: Mapping[str, Sequence[ToolId]], *, worst: int = 10) -> Scorecard:
    """Score rankings, best first, by the id of their query; a query without one counts zero.

    The ``worst`` queries are those with the least recall@5, then with the lowest first hit.
    """
    canonical = ranking_metrics.canonical_ids(dataset.catalog)
    rows: list[dict[str, float]] = []
    judged: list[WorstQuery] = []
    for query in dataset.queries:
        wanted = ranking_metrics.goals(query.relevant, query.any_of, canonical)
        if not wanted:
            continue
        ranking = rankings.get(query.id, ())
        rows.append(ranking_metrics.score(wanted, ranking, canonical))
        found = ranking_metrics.places(wanted, [canonical[tool] for tool in ranking])
        judged.append(
            WorstQuery(
                id=query.id,
                text=query.text,
                wanted=(
                    *(str(tool) for tool in query.relevant),
                    *(" or ".join(map(str, group)) for group in query.any_of),
                ),
                first=tuple(str(tool) for tool in ranking[:SHOWN]),
                places=tuple(place + 1 for place in found),
                recall=ranking_metrics.recall(found, len(wanted), SHOWN),
            )
        )
    return Scorecard(
        queries=len(rows),
        means={
            name: ranking_metrics.bootstrap([row[name] for row in rows], np.random.default_rng(SEED))
            for name in (rows[0] if rows else ())
        },
        worst=tuple(sorted((each for each in judged if each.recall < 1), key=_badness)[:worst]),
    )


def _badness(query: WorstQuery) -> tuple[float, float]:
    return query.recall, -(query.places[0] if query.places else float("inf"))
