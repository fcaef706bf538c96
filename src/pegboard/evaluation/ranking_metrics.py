"""Ranking metrics: recall@k, MRR and nDCG@k, and bootstrap intervals of their means.

A query has *goals*. A goal is a set of tools, any one of which reaches it. Copies of a tool on several servers count as
one answer: tools are compared by canonical id, and only the best-ranked copy takes a rank.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pegboard.catalog import Catalog
from pegboard.model import ToolId

Goals = frozenset[frozenset[int]]
Canonical = Mapping[ToolId, int]
"""One number for all copies of a tool."""

RECALL_AT = (1, 3, 5, 10)
RESAMPLES = 2000
AT_ONCE = 2**22
"""Values drawn at once, which bounds the memory of a bootstrap."""
LEVEL = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A mean and the bootstrap interval around it."""

    mean: float
    low: float
    high: float


def canonical_ids(catalog: Catalog) -> dict[ToolId, int]:
    """One number for all tools that share name, description and schema."""
    numbers: dict[str, int] = {}
    return {
        tool.id: numbers.setdefault(
            json.dumps([tool.name, tool.description, tool.input_schema], sort_keys=True), len(numbers)
        )
        for tool in catalog.tools
    }


def goals(relevant: Iterable[ToolId], any_of: Iterable[Iterable[ToolId]], canonical: Canonical) -> Goals:
    """One goal per group of ``any_of``, and one per relevant tool that is in no group."""
    groups = [frozenset(canonical[tool] for tool in group) for group in any_of]
    single = {canonical[tool] for tool in relevant}
    return frozenset([frozenset([tool]) for tool in single if not any(tool in group for group in groups)] + groups)


def score(wanted: Goals, ranking: Sequence[ToolId], canonical: Canonical) -> dict[str, float]:
    """The metrics of one query. An empty ranking scores zero and is not skipped."""
    found = places(wanted, [canonical[tool] for tool in ranking])
    return {f"recall@{k}": recall(found, len(wanted), k) for k in RECALL_AT} | {
        "mrr": reciprocal_rank(found),
        "ndcg@5": gain(found, len(wanted), 5),
        "full@10": float(recall(found, len(wanted), 10) == 1),
    }


def places(wanted: Goals, ranking: Iterable[int]) -> list[int]:
    """The rank (0 is best) of each goal that is reached, ascending."""
    place = {tool: index for index, tool in enumerate(dict.fromkeys(ranking))}
    best = (min((place[tool] for tool in goal if tool in place), default=None) for goal in wanted)
    return sorted(each for each in best if each is not None)


def recall(found: Sequence[int], wanted: int, k: int) -> float:
    """The share of the goals that the first k tools reach."""
    return sum(place < k for place in found) / wanted


def f1(found: Sequence[int], wanted: int, given: int) -> float:
    """Harmonic mean of precision and recall of the first ``given``: 2 hits / (given + wanted)."""
    return 2 * sum(place < given for place in found) / (given + wanted) if given else 0.0


def reciprocal_rank(found: Sequence[int]) -> float:
    """1 / rank of the first goal that is reached (1 is best); 0 if none is."""
    return 1 / (found[0] + 1) if found else 0.0


def gain(found: Sequence[int], wanted: int, k: int) -> float:
    """nDCG@k with binary relevance (Järvelin and Kekäläinen 2002)."""
    ideal = sum(1 / math.log2(place + 2) for place in range(min(k, wanted)))
    return sum(1 / math.log2(place + 2) for place in found if place < k) / ideal


def bootstrap(values: Sequence[float], random: np.random.Generator) -> Interval:
    """Percentile interval of the mean over resampled queries (Efron 1979). Pass differences for a paired comparison."""
    sample = np.asarray(values, np.float64)
    rows = max(1, AT_ONCE // len(sample))
    means = np.concatenate(
        [
            sample[random.integers(0, len(sample), (min(rows, RESAMPLES - done), len(sample)))].mean(axis=1)
            for done in range(0, RESAMPLES, rows)
        ]
    )
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(mean=float(sample.mean()), low=float(low), high=float(high))
