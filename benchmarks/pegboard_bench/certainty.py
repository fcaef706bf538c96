"""Whether probabilities mean what they say, and what certainty saves: calibration, realised recall, tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pegboard.evaluation import ranking_metrics
from pegboard.evaluation.calibration.labelled_queries import BINS, TOP
from pegboard.evaluation.datasets import ToolSet
from pegboard.model import Floats
from pegboard.routing_board import RoutingBoard

Doubles = NDArray[np.float64]

MOST = 200
ASKED = (0.5, 0.6, 0.7, 0.8, 0.9)
SHARES = np.geomspace(0.5, 0.0002, 80)
DEEPEST = 60
"""Fixed k up to this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One query: probabilities best first with the least share for each recall, and what was relevant.

    ``found`` has the place of each goal, ``tokens`` those of the definitions, in the order of the ranking.
    """

    values: Floats
    relevant: NDArray[np.bool_]
    found: Doubles
    tokens: NDArray[np.int64]
    bars: Mapping[float, float]

    def taken(self, share: float) -> int:
        """How many tools hold this share of the expected relevance each."""
        return max(1, int(np.count_nonzero(self.values >= share * self.values.sum(dtype=np.float64))))

    def recall(self, k: int) -> float:
        return float(np.mean(self.found < k))


async def judge(dataset: ToolSet, board: RoutingBoard) -> list[Judged]:
    """Every query through the board, ungated."""
    canonical = ranking_metrics.canonical_ids(dataset.catalog)
    numbers = np.array([canonical[tool.id] for tool in dataset.catalog.tools])
    tokens = np.array(dataset.catalog.token_counts)
    judged = []
    for query in dataset.queries:
        scores = await board.scores(query.text)
        if scores is None:
            continue
        goals = ranking_metrics.goals(query.relevant, query.any_of, canonical)
        order = np.argsort(-scores.values, kind="stable")
        found = [int(np.flatnonzero(np.isin(numbers[order], list(goal)))[0]) for goal in goals]
        judged.append(
            Judged(
                values=scores.values[order],
                relevant=np.isin(numbers[order], list(frozenset().union(*goals))),
                found=np.array(found, np.float64),
                tokens=tokens[order],
                bars={asked: scores.share_for(asked) for asked in ASKED},
            )
        )
    return judged


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """Expected calibration error, Brier skill over the base rate, and the bins: (mean said, share true, tools)."""

    ece: float
    skill: float
    bins: tuple[tuple[float, float, int], ...]


def pooled(judged: Iterable[Sequence[Judged]]) -> list[Judged]:
    """At most `MOST` queries of each set, evenly over it, so that none outweighs the others."""
    return [each for of_set in judged for each in of_set[:: max(1, -(-len(of_set) // MOST))]]


def reliability(judged: Iterable[Judged]) -> Reliability:
    """Over the `TOP` tools of every query, in `BINS` bins of equal mass (Naeini et al. 2015)."""
    pairs = [(each.values[:TOP], each.relevant[:TOP]) for each in judged]
    said = np.concatenate([values for values, _ in pairs]).astype(np.float64)
    true = np.concatenate([relevant for _, relevant in pairs]).astype(np.float64)
    chunks = np.array_split(np.argsort(said, kind="stable"), BINS)
    bins = tuple((float(said[rows].mean()), float(true[rows].mean()), len(rows)) for rows in chunks)
    return Reliability(
        ece=sum(count * abs(expected - seen) for expected, seen, count in bins) / len(said),
        skill=1 - float(np.mean((said - true) ** 2)) / float(true.var()),
        bins=bins,
    )


def realised(judged: Sequence[Judged], asked: float) -> float:
    """The mean recall of selections that were asked for this one, with no k and no budget."""
    return float(np.mean([each.recall(each.taken(each.bars[asked])) for each in judged]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Mean tokens of the definitions and mean recall, from few tools to many."""

    tokens: tuple[float, ...]
    recall: tuple[float, ...]

    def tokens_at(self, recall: float) -> float | None:
        """The tokens at which the recall is reached, between two points in proportion; None where it never is."""
        first = next((place for place, reached in enumerate(self.recall) if reached >= recall), None)
        if first is None:
            return None
        around = slice(max(0, first - 1), first + 1)
        return float(np.interp(recall, self.recall[around], self.tokens[around]))


def adaptive(judged: Sequence[Judged]) -> Curve:
    """As many tools as hold a share of the expected relevance each, for shares from large to small."""
    return _curve([[each.taken(share) for each in judged] for share in SHARES], judged)


def fixed(judged: Sequence[Judged]) -> Curve:
    """The same number of tools for every query."""
    return _curve([[k] * len(judged) for k in range(1, DEEPEST + 1)], judged)


def _curve(taken: Iterable[Sequence[int]], judged: Sequence[Judged]) -> Curve:
    points = [
        (
            float(np.mean([each.tokens[:k].sum() for k, each in zip(ks, judged, strict=True)])),
            float(np.mean([each.recall(k) for k, each in zip(ks, judged, strict=True)])),
        )
        for ks in taken
    ]
    tokens, recall = zip(*points, strict=True)
    return Curve(tokens=tokens, recall=recall)
