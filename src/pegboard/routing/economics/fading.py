"""How a tool that failed comes to be tried again: with time, it is thought of as it was before.

The seed's averages only move with calls, and a tool that is not chosen is not called: one bad spell would last for
ever. So while nobody calls it, what is worse than its target comes halfway to it in every ``half_life`` seconds. The
target is the better of the prior and of what was known after its last good call: one that neither failed nor took three
times as long as before. A good call goes on from there, as it confirms it; a bad one goes on from all that was known,
so that a probe which fails costs one call. What is better than the target never fades. A half-life of 0 is the seed.
"""

from __future__ import annotations

import numpy as np

from pegboard.model import Outcome, ToolStatistics
from pegboard.routing.economics.equations import Array, Estimates

HALF_LIFE = 600.0
SLOW = 3.0
"""So many times the latency that is known of a tool is slow."""


def is_good(outcome: Outcome, known: ToolStatistics) -> bool:
    return outcome.success and outcome.latency_ms / 1000 <= SLOW * known.latency


def target(good: ToolStatistics, prior: ToolStatistics) -> ToolStatistics:
    """The better of the two, average by average."""
    return ToolStatistics(
        success=max(good.success, prior.success),
        variance=min(good.variance, prior.variance),
        failure=min(good.failure, prior.failure),
        latency=min(good.latency, prior.latency),
    )


def faded(known: Estimates, towards: Estimates, age: Array | float, *, half_life: float = HALF_LIFE) -> Estimates:
    """The estimates of what nobody called for ``age`` seconds; arrays of one shape.

    >>> def one(success: float) -> Estimates:
    ...     return Estimates(success=np.array([success]), variance=np.zeros(1), failure=np.zeros(1), latency=np.ones(1))
    >>> faded(one(0.1), one(0.9), 600.0).success, faded(one(0.95), one(0.9), 600.0).success
    (array([0.5]), array([0.95]))
    """
    moved = 1 - np.exp2(-np.asarray(age, np.float64) / half_life) if half_life else 0.0

    def down(values: Array, to: Array) -> Array:
        return np.asarray(values - np.maximum(values - to, 0) * moved)

    return Estimates(
        success=np.asarray(known.success + np.maximum(towards.success - known.success, 0) * moved),
        variance=down(known.variance, towards.variance),
        failure=down(known.failure, towards.failure),
        latency=down(known.latency, towards.latency),
    )


def estimates_of(one: ToolStatistics) -> Estimates:
    """Of shape ()."""
    values = (one.success, one.variance, one.failure, one.latency)
    success, variance, failure, latency = (np.asarray(value, np.float64) for value in values)
    return Estimates(success=success, variance=variance, failure=failure, latency=latency)
