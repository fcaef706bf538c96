"""Updates a tool's statistics with the outcomes of calls: exponential moving averages (EHRR eq. 8)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from math import isfinite

from pegboard.model import Outcome, Smoothing, ToolId, ToolStatistics

PRIOR = ToolStatistics()
"""Statistics assumed for a tool that was never called."""
SMOOTHING = Smoothing()


def ema(old: float, observed: float, weight: float) -> float:
    """(1 − λ)·old + λ·observed, in the unit of both; λ is ``weight``, in (0, 1).

    >>> ema(1.0, 0.0, 0.25)
    0.75
    """
    return (1 - weight) * old + weight * observed


def after(statistics: ToolStatistics, outcome: Outcome, smoothing: Smoothing) -> ToolStatistics:
    """The counts, r, σ², p_fail and L^call (seconds) after an outcome (EHRR eq. 8).

    y is 1 for a success and fail is 1 if the server failed. σ² is updated with (y − r)², where r is the value before
    its own update. A failure that was the caller's fault counts as a call but changes no average, and a latency that is
    no number changes none of time. A verdict is handled by `revised`.

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
        latency=ema(statistics.latency, seconds, smoothing.latency) if isfinite(seconds) else statistics.latency,
    )


def revised(statistics: ToolStatistics, smoothing: Smoothing) -> ToolStatistics:
    """The statistics as if the last call, a success, had failed: y = 0 in eq. 8 instead of 1.

    The result is exact if nothing was observed since that call. After further calls it is an approximation that counts
    slightly more against the tool, never in its favour.

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
    """Each outcome, followed by a copy for its server as a whole (EHRR's r_i of eq. 8); stores observe both.

    >>> from pegboard.model import ToolId
    >>> [str(each.tool) for each in with_servers([Outcome(tool=ToolId("a", "b"), success=True, latency_ms=1)])]
    ['a/b', 'a/']
    """
    return [each for outcome in outcomes for each in (outcome, replace(outcome, tool=outcome.tool.whole))]


def after_all(statistics: ToolStatistics, outcomes: Iterable[Outcome], smoothing: Smoothing) -> ToolStatistics:
    """The statistics after several outcomes of one tool, in order."""
    return reduce(lambda known, outcome: after(known, outcome, smoothing), outcomes, statistics)


def by_tool(outcomes: Sequence[Outcome]) -> dict[ToolId, list[Outcome]]:
    """The outcomes of each tool, in order. Tools are sorted, so that concurrent writers lock them in the same order."""
    groups: dict[ToolId, list[Outcome]] = {tool: [] for tool in sorted({each.tool for each in outcomes})}
    for outcome in outcomes:
        groups[outcome.tool].append(outcome)
    return groups
