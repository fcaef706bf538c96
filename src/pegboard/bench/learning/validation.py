"""Whether a fusion that was fitted here is better than the one before, on queries that it was not fitted on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pegboard.bench import metrics
from pegboard.bench.learning.labelled import Judgement, Labelled, calibration_error, judge
from pegboard.retrieval import Progress
from pegboard.retrieval.fitting import fit
from pegboard.retrieval.fusion import Fusion

EPSILON = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Held-out figures by name before and after, and by how much each query gained, with its interval.

    The gain of a loss is what it fell by.
    """

    before: Mapping[str, float]
    after: Mapping[str, float]
    gains: Mapping[str, metrics.Interval]

    @property
    def better(self) -> bool:
        """The log loss fell, surely, and no less is found."""
        return self.gains["log_loss"].low > 0 and self.after["recall@5"] >= self.before["recall@5"] - EPSILON


@dataclass(frozen=True, slots=True, kw_only=True)
class Refit:
    """A fusion fitted on all queries, and how such a fit did on queries it had not seen."""

    fusion: Fusion
    held_out: Comparison


def refit(
    queries: Sequence[Labelled],
    before: Fusion,
    *,
    fold_of: NDArray[np.int64],
    seed: int,
    progress: Progress | None = None,
) -> Refit:
    """Fitted near ``before``; each fold is judged by a fit on the others."""
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
    """Query by query (paired bootstrap), and the calibration error over all of them."""
    gains = {
        "recall@5": [new.recall - old.recall for old, new in zip(before, after, strict=True)],
        "mrr": [new.mrr - old.mrr for old, new in zip(before, after, strict=True)],
        "log_loss": [old.loss - new.loss for old, new in zip(before, after, strict=True)],
    }
    return Comparison(
        before=_figures(before),
        after=_figures(after),
        gains={name: metrics.bootstrap(values, np.random.default_rng(seed)) for name, values in gains.items()},
    )


def _figures(judged: Sequence[Judgement]) -> dict[str, float]:
    return {
        "recall@5": float(np.mean([each.recall for each in judged])),
        "mrr": float(np.mean([each.mrr for each in judged])),
        "log_loss": float(np.mean([each.loss for each in judged])),
        "ece": calibration_error(judged),
    }


def _fitted(queries: Sequence[Labelled], prior: Fusion) -> Fusion:
    return fit([query.example for query in queries], list(prior.weights), prior=prior)


def _probabilities(fusion: Fusion, query: Labelled) -> NDArray[np.float32]:
    parts = {part: query.example.parts[part] for part in fusion.weights}
    return fusion.fuse(parts, clauses=query.example.clauses).values
