"""What calls have shown, as of now: the store's statistics, and this process's own calls before the store has them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace

from pegboard.averages import PRIOR, SMOOTHING, after
from pegboard.errors import PegboardError
from pegboard.model import Outcome, Smoothing, ToolId, ToolStatistics
from pegboard.routing.economics.fading import HALF_LIFE, SLOW, estimates_of, faded, is_good, target
from pegboard.seams import Clock, Statistics

LOGGER = logging.getLogger(__name__)

FRESH_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Statistics, what they fade towards, and when (monotonic seconds) the last call was."""

    statistics: ToolStatistics
    target: ToolStatistics
    at: float
    version: int


class Knowledge:
    """One for all boards of a process. A server as a whole goes by its name and an empty tool name (`ToolId.whole`).

    The store is read again every ``fresh`` seconds, by whichever turn comes first; while it cannot be read, what was
    known stays. Of two accounts of a tool the one of more calls counts. ``half_life`` is for `fading.faded`.
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
        self._known: dict[ToolId, Known] = {}

    @property
    def now(self) -> float:
        return self._clock.monotonic()

    def observe(self, outcome: Outcome) -> None:
        """A call of this process: it counts with the next turn, for its tool and for its server."""
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
        """Read the store again, if that is due."""
        if self._store is None or (self._read_at is not None and self.now - self._read_at < self._fresh):
            return
        self._read_at = self.now
        try:
            rows = await self._store.read()
        except PegboardError as error:
            LOGGER.debug("Statistics stay as they were: %s", error)
            return
        for key, row in rows.items():
            self._adopt(key, row)

    def changed_since(self, version: int) -> Iterator[tuple[ToolId, Known]]:
        """What was learnt after a version, the newest first."""
        for key in reversed(self._known):
            known = self._known[key]
            if known.version <= version:
                return
            yield key, known

    @property
    def _unknown(self) -> Known:
        return Known(statistics=self.prior, target=self.prior, at=self.now, version=0)

    def _faded(self, known: Known) -> ToolStatistics:
        now = faded(
            estimates_of(known.statistics),
            estimates_of(known.target),
            self.now - known.at,
            half_life=self.half_life,
        )
        return replace(
            known.statistics,
            success=float(now.success),
            variance=float(now.variance),
            failure=float(now.failure),
            latency=float(now.latency),
        )

    def _adopt(self, key: ToolId, row: ToolStatistics) -> None:
        known = self._known.get(key) or self._unknown
        if row.calls <= known.statistics.calls:
            return
        worse = row.success < known.statistics.success or row.latency > SLOW * known.target.latency
        self._put(key, row, known.target if worse else target(row, self.prior), self.now)

    def _put(self, key: ToolId, statistics: ToolStatistics, towards: ToolStatistics, at: float) -> None:
        self.version += 1
        self._known.pop(key, None)
        self._known[key] = Known(statistics=statistics, target=towards, at=at, version=self.version)
