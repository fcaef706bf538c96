"""How often each caller has called lately, in memory."""

from __future__ import annotations

from collections.abc import Sequence

from pegboard.protocols import Clock
from pegboard.rate_limits import RateMeter, admission

SWEEP = 1_000


class MemoryRates:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._arrivals: dict[str, float] = {}
        self._taken = 0

    async def take(self, meters: Sequence[RateMeter]) -> float:
        now = self._clock.time()
        wait, after = admission(meters, self._arrivals, now)
        self._arrivals |= after
        self._taken += 1
        if self._taken % SWEEP == 0:
            self._arrivals = {key: arrival for key, arrival in self._arrivals.items() if arrival > now}
        return wait
