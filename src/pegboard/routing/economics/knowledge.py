"""Current statistics of calls, and the recovery of failed tools: over time, their estimates fade back to earlier ones.

EHRR's averages change only with calls, and a tool that is not chosen is not called, so one bad spell would last for
ever. Therefore, while a tool is not called, estimates worse than their target move halfway to it every ``half_life``
seconds. The target is the better of the prior and the statistics after the last good call, one that neither failed nor
took three times as long as usual and a noticeable time. A good call continues from the faded estimates, which it
confirms; a bad one from the unfaded ones, so that a failed probe costs one call. Estimates better than the target never
fade. A half-life of 0 is EHRR.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from pegboard.averages import PRIOR, SMOOTHING, after
from pegboard.errors import PegboardError
from pegboard.model import Outcome, Smoothing, ToolId, ToolStatistics
from pegboard.protocols import Clock, Statistics
from pegboard.routing.economics.equations import Array, Estimates

LOGGER = logging.getLogger(__name__)

HALF_LIFE = 600.0
SLOW = 3.0
"""A call is slow from this multiple of the known latency on."""
NOTICEABLE_SECONDS = 0.1
"""No call is slow below this: on a busy machine, a process that was idle takes some milliseconds more to answer."""
FRESH_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsEntry:
    """Statistics, their fading target, and the time of the last call (monotonic seconds)."""

    statistics: ToolStatistics
    target: ToolStatistics
    at: float
    version: int


class Knowledge:
    """Shared by all boards of a process. A whole server is keyed by its name and an empty tool name (`ToolId.whole`).

    The store is read again every ``fresh`` seconds, by the first turn after that; if it cannot be read, the statistics
    stay as they were. Of two records of a tool, the one with more calls counts; one of an infinite latency does not.
    ``half_life`` is for `faded`.
    """

    def __init__(
        self,
        store: Statistics | None,
        clock: Clock,
        *,
        prior: ToolStatistics = PRIOR,
        smoothing: Smoothing = SMOOTHING,
        half_life: float = HALF_LIFE,
        fresh: float = FRESH_SECONDS,
    ) -> None:
        self.prior = prior
        self.half_life = half_life
        self.version = 0
        self._store = store
        self._clock = clock
        self._smoothing = smoothing
        self._fresh = fresh
        self._read_at: float | None = None
        self._known: dict[ToolId, StatisticsEntry] = {}

    @property
    def now(self) -> float:
        return self._clock.monotonic()

    def observe(self, outcome: Outcome) -> None:
        """Count a call of this process, for its tool and its server, from the next turn on."""
        for key in (outcome.tool, outcome.tool.whole):
            known = self._known.get(key) or self._unknown
            if outcome.failure in ("caller", "verdict"):
                self._put(key, after(known.statistics, outcome, self._smoothing), known.target, known.at)
            elif is_good(outcome, known.target):
                good = after(self._faded(known), outcome, self._smoothing)
                self._put(key, good, target(good, self.prior), self.now)
            else:
                self._put(key, after(known.statistics, outcome, self._smoothing), known.target, self.now)

    async def refresh(self) -> None:
        """Read the store again if that is due."""
        if self._store is None or (self._read_at is not None and self.now - self._read_at < self._fresh):
            return
        self._read_at = self.now
        try:
            rows = await self._store.read()
        except PegboardError as error:
            LOGGER.debug("Statistics were not refreshed: %s", error)
            return
        for key, row in rows.items():
            self._adopt(key, row)

    def changed_since(self, version: int) -> Iterator[tuple[ToolId, StatisticsEntry]]:
        """The entries changed after a version, the newest first."""
        for key in reversed(self._known):
            known = self._known[key]
            if known.version <= version:
                return
            yield key, known

    @property
    def _unknown(self) -> StatisticsEntry:
        return StatisticsEntry(statistics=self.prior, target=self.prior, at=self.now, version=0)

    def _faded(self, known: StatisticsEntry) -> ToolStatistics:
        """As `faded`, of one entry and in plain numbers: it runs with each call."""
        now, to, moved = known.statistics, known.target, float(faded_share(self.now - known.at, self.half_life))
        return replace(
            now,
            success=now.success + max(to.success - now.success, 0.0) * moved,
            variance=now.variance - max(now.variance - to.variance, 0.0) * moved,
            failure=now.failure - max(now.failure - to.failure, 0.0) * moved,
            latency=now.latency - max(now.latency - to.latency, 0.0) * moved,
        )

    def _adopt(self, key: ToolId, row: ToolStatistics) -> None:
        known = self._known.get(key) or self._unknown
        if row.calls <= known.statistics.calls or not math.isfinite(row.latency):
            return
        worse = row.success < known.statistics.success or row.latency > slow_from(known.target)
        self._put(key, row, known.target if worse else target(row, self.prior), self.now)

    def _put(self, key: ToolId, statistics: ToolStatistics, towards: ToolStatistics, at: float) -> None:
        self.version += 1
        self._known.pop(key, None)
        self._known[key] = StatisticsEntry(statistics=statistics, target=towards, at=at, version=self.version)


def is_good(outcome: Outcome, known: ToolStatistics) -> bool:
    return outcome.success and outcome.latency_ms / 1000 <= slow_from(known)


def slow_from(known: ToolStatistics) -> float:
    """Seconds beyond which a call is slow for a tool of these statistics.

    >>> slow_from(ToolStatistics(latency=2.0)), slow_from(ToolStatistics(latency=0.004))
    (6.0, 0.1)
    """
    return max(SLOW * known.latency, NOTICEABLE_SECONDS)


def target(good: ToolStatistics, prior: ToolStatistics) -> ToolStatistics:
    """The better value of each average."""
    return ToolStatistics(
        success=max(good.success, prior.success),
        variance=min(good.variance, prior.variance),
        failure=min(good.failure, prior.failure),
        latency=min(good.latency, prior.latency),
    )


def faded_share(age: Array | float, half_life: float) -> Array | float:
    """How far estimates move to their target in ``age`` seconds without a call, from 0 to 1."""
    return 1 - 2.0 ** (-age / half_life) if half_life else 0.0


def faded(known: Estimates, towards: Estimates, age: Array | float, *, half_life: float = HALF_LIFE) -> Estimates:
    """The estimates after ``age`` seconds without a call; arrays of one shape.

    >>> def one(success: float) -> Estimates:
    ...     return Estimates(success=np.array([success]), variance=np.zeros(1), failure=np.zeros(1), latency=np.ones(1))
    >>> faded(one(0.1), one(0.9), 600.0).success, faded(one(0.95), one(0.9), 600.0).success
    (array([0.5]), array([0.95]))
    """
    moved = faded_share(age, half_life)

    def down(values: Array, to: Array) -> Array:
        return np.asarray(values - np.maximum(values - to, 0) * moved)

    return Estimates(
        success=np.asarray(known.success + np.maximum(towards.success - known.success, 0) * moved),
        variance=down(known.variance, towards.variance),
        failure=down(known.failure, towards.failure),
        latency=down(known.latency, towards.latency),
    )
