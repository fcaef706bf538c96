"""The threshold of `attention`, chosen as in Tool Attention §5.2: sweep θ and keep the best F1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pegboard.evaluation import ranking_metrics
from pegboard.evaluation.calibration.labelled_queries import LabelledQuery
from pegboard.model import Floats
from pegboard.routing.select import best_first, gate, top_k

THETAS = tuple(round(0.10 + 0.02 * step, 2) for step in range(21))
"""0.10, 0.12, … 0.50 (Tool Attention §5.2)."""

Doubles = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Means over the queries at one θ; ``tools`` is the number of tools that pass, at most k."""

    theta: float
    precision: float
    recall: float
    f1: float
    tools: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """The curve, its best θ, and the held-out F1 of choosing θ this way, compared with the previous θ."""

    points: tuple[Point, ...]
    best: float
    before: float
    held_out_before: float
    held_out_after: float
    gain: ranking_metrics.Interval

    @property
    def better(self) -> bool:
        return self.gain.low > 0


def sweep(
    queries: Sequence[LabelledQuery], k: int | None, before: float, fold_of: NDArray[np.int64], seed: int
) -> Sweep:
    """Sweep over all queries; for the held-out F1, sweep over all folds but one and judge on that fold."""
    measured = np.array([[served(query, theta, k) for theta in THETAS] for query in queries])
    old = np.array([served(query, before, k)[2] for query in queries])
    f1 = measured[:, :, 2]
    new = np.empty(len(queries))
    for fold in np.unique(fold_of):
        new[fold_of == fold] = f1[fold_of == fold, best_place(f1[fold_of != fold])]
    means = measured.mean(axis=0)
    return Sweep(
        points=tuple(
            Point(**dict(zip(Point.__slots__, [theta, *row], strict=True)))
            for theta, row in zip(THETAS, means.tolist(), strict=True)
        ),
        best=THETAS[best_place(f1)],
        before=before,
        held_out_before=float(old.mean()),
        held_out_after=float(new.mean()),
        gain=ranking_metrics.bootstrap((new - old).tolist(), np.random.default_rng(seed)),
    )


def best_place(f1: Doubles) -> int:
    """Index in `THETAS` of the best mean F1; ties go to the lowest θ, which lets more tools through."""
    return int(np.argmax(f1.mean(axis=0)))


def served(query: LabelledQuery, theta: float, k: int | None) -> tuple[float, float, float, float]:
    """Precision, recall, F1 and number of the tools that a threshold lets through, at most k.

    A tool is correct if it reaches a goal; recall counts goals.
    """
    scores: Floats = query.example.parts["cosine"]
    chosen = top_k(best_first(scores, gate(scores, np.ones(len(scores), np.bool_), theta)), k)
    among = set(chosen.tolist())
    reached = sum(not goal.isdisjoint(among) for goal in query.example.goals)
    precision = float(query.example.relevant[chosen].mean()) if len(chosen) else 0.0
    recall = reached / len(query.example.goals)
    f1 = 2 * precision * recall / (precision + recall) if reached else 0.0
    return precision, recall, f1, float(len(chosen))
