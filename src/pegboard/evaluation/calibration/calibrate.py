"""Fits fusions and the threshold to one deployment's queries, and keeps each only if it is better on unseen queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pegboard.evaluation import ranking_metrics
from pegboard.evaluation.calibration.labelled_queries import Judgement, LabelledQuery, calibration_error, folds, judge
from pegboard.evaluation.calibration.sweep import Sweep, sweep
from pegboard.retrieval import Progress
from pegboard.retrieval.fusion import Fusion, shipped
from pegboard.retrieval.fusion_fit import fit
from pegboard.retrieval.local_fit import LocalFit
from pegboard.routing import Profile

FOLDS = 5
SEED = 42

EPSILON = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Held-out metrics by name, before and after, and the mean gain per query with its interval.

    The gain of a loss is its decrease.
    """

    before: Mapping[str, float]
    after: Mapping[str, float]
    gains: Mapping[str, ranking_metrics.Interval]

    @property
    def better(self) -> bool:
        """Whether the log loss fell significantly and recall did not fall."""
        return self.gains["log_loss"].low > 0 and self.after["recall@5"] >= self.before["recall@5"] - EPSILON


@dataclass(frozen=True, slots=True, kw_only=True)
class Refit:
    """A fusion fitted on all queries, and the cross-validated comparison of such fits on unseen queries."""

    fusion: Fusion
    held_out: Comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationRun:
    """The result: the sweep of θ, and the refitted fusions by name."""

    sweep: Sweep
    refits: Mapping[str, Refit]
    queries: int
    tools: int

    def kept(self, encoder: str) -> LocalFit | None:
        """The parts that are better than before, to be saved; None if there are none."""
        fusions = {name: each.fusion for name, each in self.refits.items() if each.held_out.better}
        if not fusions and not self.sweep.better:
            return None
        origin = {"queries": self.queries, "tools": self.tools, "folds": FOLDS, "seed": SEED}
        threshold = self.sweep.best if self.sweep.better else None
        return LocalFit(encoder=encoder, fusions=fusions, threshold=threshold, origin=origin)


def learn(
    attention: Sequence[LabelledQuery],
    hybrid: Sequence[LabelledQuery],
    profile: Profile,
    progress: Progress | None = None,
) -> CalibrationRun:
    """Calibrate on the same queries scored by both profiles; ``profile`` is `attention` with its previous θ and k."""
    fold_of = folds([query.text for query in hybrid], FOLDS, SEED)
    before = profile.threshold or 0.0
    return CalibrationRun(
        sweep=sweep(attention, profile.k, before, fold_of, SEED),
        refits={
            name: refit(hybrid, fusion, fold_of=fold_of, seed=SEED, progress=progress)
            for name, fusion in shipped().items()
        },
        queries=len(hybrid),
        tools=len(hybrid[0].canonical),
    )


def refit(
    queries: Sequence[LabelledQuery],
    before: Fusion,
    *,
    fold_of: NDArray[np.int64],
    seed: int,
    progress: Progress | None = None,
) -> Refit:
    """Fit a fusion with ``before`` as its prior; each fold is judged with a fit on the other folds."""
    old = [judge(query, _probabilities(before, query)) for query in queries]
    new = list(old)
    for fold in np.unique(fold_of):
        fitted = _fitted([query for query, own in zip(queries, fold_of, strict=True) if own != fold], before)
        for place in np.flatnonzero(fold_of == fold).tolist():
            new[place] = judge(queries[place], _probabilities(fitted, queries[place]))
        if progress is not None:
            progress(int(fold) + 1, int(fold_of.max()) + 1)
    return Refit(fusion=_fitted(queries, before), held_out=compare(old, new, seed))


def compare(before: Sequence[Judgement], after: Sequence[Judgement], seed: int) -> Comparison:
    """Compare query by query (paired bootstrap), with the calibration error over all queries."""
    gains = {
        "recall@5": [new.recall - old.recall for old, new in zip(before, after, strict=True)],
        "mrr": [new.mrr - old.mrr for old, new in zip(before, after, strict=True)],
        "log_loss": [old.loss - new.loss for old, new in zip(before, after, strict=True)],
    }
    return Comparison(
        before=_figures(before),
        after=_figures(after),
        gains={name: ranking_metrics.bootstrap(values, np.random.default_rng(seed)) for name, values in gains.items()},
    )


def _figures(judged: Sequence[Judgement]) -> dict[str, float]:
    return {
        "recall@5": float(np.mean([each.recall for each in judged])),
        "mrr": float(np.mean([each.mrr for each in judged])),
        "log_loss": float(np.mean([each.loss for each in judged])),
        "ece": calibration_error(judged),
    }


def _fitted(queries: Sequence[LabelledQuery], prior: Fusion) -> Fusion:
    return fit([query.example for query in queries], list(prior.weights), prior=prior)


def _probabilities(fusion: Fusion, query: LabelledQuery) -> NDArray[np.float32]:
    parts = {part: query.example.parts[part] for part in fusion.weights}
    return fusion.fuse(parts, clauses=query.example.clauses).values
