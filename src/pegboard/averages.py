"""What one more call makes of a tool's statistics: exponential moving averages (EHRR eq. 8)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce

from pegboard.model import Outcome, Smoothing, ToolStatistics

PRIOR = ToolStatistics()
"""What is assumed of a tool that was never called."""
SMOOTHING = Smoothing()


def ema(old: float, observed: float, weight: float) -> float:
    """(1 − λ)·old + λ·observed, in the unit of both; λ is ``weight``, in (0, 1).

    >>> ema(1.0, 0.0, 0.25)
    0.75
    """
    return (1 - weight) * old + weight * observed


def after(statistics: ToolStatistics, outcome: Outcome, smoothing: Smoothing) -> ToolStatistics:
    """r, σ², p_fail and L^call (seconds) after an outcome, and the counts (EHRR eq. 8).

    y is 1 for a success, fail is 1 where the server failed, and σ² takes in (y − r)² with r before its own update. What
    was the caller's fault counts as a call and changes no average; a verdict is `revised`.

    >>> from pegboard.model import ToolId
    >>> lost = Outcome(tool=ToolId("a", "b"), success=False, latency_ms=3_000, failure="server")
    >>> after(ToolStatistics(success=1, variance=0, failure=0, latency=1), lost, Smoothing())
    ToolStatistics(calls=1, successes=0, success=0.85, variance=0.15, failure=0.15, latency=1.2999999999999998)
    """
    if outcome.failure == "verdict":
        return revised(statistics, smoothing)
    counted = replace(statistics, calls=statistics.calls + 1, successes=statistics.successes + outcome.success)
    if outcome.failure == "caller":
        return counted
    y, fail, seconds = float(outcome.success), float(outcome.failure == "server"), outcome.latency_ms / 1000
    surprise = y - statistics.success
    return replace(
        counted,
        success=ema(statistics.success, y, smoothing.success),
        variance=ema(statistics.variance, surprise * surprise, smoothing.variance),
        failure=ema(statistics.failure, fail, smoothing.failure),
        latency=ema(statistics.latency, seconds, smoothing.latency),
    )


def revised(statistics: ToolStatistics, smoothing: Smoothing) -> ToolStatistics:
    """The statistics as if the last call, a success, had failed: y = 0 in eq. 8 where it was 1.

    Exact where nothing was observed since. After other calls the one that is judged weighs less than is taken away:
    what comes late counts a little more against the tool, never in its favour.

    >>> from pegboard.model import ToolId
    >>> good = Outcome(tool=ToolId("a", "b"), success=True, latency_ms=1_000)
    >>> bad = replace(good, success=False, failure="tool")
    >>> known = revised(after(PRIOR, good, SMOOTHING), SMOOTHING)
    >>> round(known.success - after(PRIOR, bad, SMOOTHING).success, 12), known.calls, known.successes
    (0.0, 1, 0)
    """
    before = (statistics.success - smoothing.success) / (1 - smoothing.success)
    variance = statistics.variance + smoothing.variance * (2 * before - 1)
    return replace(
        statistics,
        successes=max(statistics.successes - 1, 0),
        success=max(statistics.success - smoothing.success, 0.0),
        variance=min(max(variance, 0.0), 1.0),
    )


def with_servers(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """The outcomes, each once more for its server as a whole: what a door hands to the store (EHRR's r_i of eq. 8).

    >>> from pegboard.model import ToolId
    >>> [str(each.tool) for each in with_servers([Outcome(tool=ToolId("a", "b"), success=True, latency_ms=1)])]
    ['a/b', 'a/']
    """
    return [each for outcome in outcomes for each in (outcome, replace(outcome, tool=outcome.tool.whole))]


def after_all(statistics: ToolStatistics, outcomes: Iterable[Outcome], smoothing: Smoothing) -> ToolStatistics:
    """The statistics after these outcomes of one tool, in their order."""
    return reduce(lambda known, outcome: after(known, outcome, smoothing), outcomes, statistics)
