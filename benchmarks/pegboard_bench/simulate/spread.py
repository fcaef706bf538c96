"""Intervals where two things are chance: which tasks were asked, and which world they were asked in."""

from __future__ import annotations

import numpy as np

from pegboard.evaluation.ranking_metrics import LEVEL, Interval
from pegboard_bench.simulate.world import Numbers

RESAMPLES = 2000


class Resampled:
    """Ratios of sums over worlds and tasks, with percentile intervals over both resampled at once (Owen 2007).

    Two methods that are given the same resamples are compared in pairs.
    """

    def __init__(self, worlds: int, tasks: int, seed: int, *, resamples: int = RESAMPLES) -> None:
        random = np.random.default_rng(seed)
        self._worlds = _weights(random, worlds, resamples)
        self._tasks = _weights(random, tasks, resamples)

    def ratios(self, above: Numbers, below: Numbers) -> Numbers:
        """Σ above / Σ below of arrays of shape (worlds, tasks): as it is, then resampled, shape (1 + resamples,).

        Where nothing is below, 0.
        """
        up, down = self._sums(above), self._sums(below)
        return np.divide(up, down, out=np.zeros_like(up), where=down != 0)

    def _sums(self, values: Numbers) -> Numbers:
        resampled = ((self._worlds @ values) * self._tasks).sum(axis=1)
        return np.concatenate([[values.sum()], resampled])


def interval(values: Numbers) -> Interval:
    """Of a figure as it is and as it is resampled."""
    low, high = np.quantile(values[1:], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(mean=float(values[0]), low=float(low), high=float(high))


def change(ours: Numbers, theirs: Numbers) -> Numbers:
    """ours / theirs − 1; 0 where theirs are 0."""
    return np.divide(ours, theirs, out=np.ones_like(ours), where=theirs != 0) - 1


def _weights(random: np.random.Generator, size: int, resamples: int) -> Numbers:
    """How often each is drawn, shape (resamples, size)."""
    return random.multinomial(size, np.full(size, 1 / size), resamples).astype(np.float64)
