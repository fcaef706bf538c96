"""Which traces that begin here are recorded: a share of them, and at most so many a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

TRACES = "Traces that began here, by whether OpenTelemetry records them."
LOW = 1 << 64
ROUNDING = 1e-3
"""Of one: what sums of intervals may be off."""


class SecondLimit:
    """Lets at most ``most`` through a second, on average, and as many at once as in one second: a generic cell rate
    (ITU-T I.371), which is a token bucket with one number. In t seconds, at most ``max(1, most) + t * most`` pass.

    Safe from any thread. ``now`` is a clock in seconds.

    >>> limit = SecondLimit(2, now=lambda: 0.0)
    >>> [limit.admits() for _ in range(3)]
    [True, True, False]
    """

    def __init__(self, most: float, *, now: Callable[[], float] = time.monotonic) -> None:
        self._interval = 1 / most if most else 0.0
        self._tolerance = self._interval * (max(1.0, most) - 1 + ROUNDING)
        self._now = now
        self._lock = threading.Lock()
        self._next = float("-inf") if most else float("inf")

    def admits(self) -> bool:
        now = self._now()
        with self._lock:
            due = self._next if self._next > now else now
            if due - now > self._tolerance:
                return False
            self._next = due + self._interval
            return True


class TraceSampler:
    """``ratio`` is drawn from a trace's id as the SDK's TraceIdRatioBased does, so that every process decides alike;
    ``limit`` holds for what that leaves. Counts its decisions.

    >>> sampler = TraceSampler(limit=SecondLimit(1, now=lambda: 0.0))
    >>> [sampler.takes(bytes(16)) for _ in range(3)], sampler.taken, sampler.left_out
    ([True, False, False], 1, 2)
    """

    def __init__(self, ratio: float = 1.0, limit: SecondLimit | None = None) -> None:
        self.taken = self.left_out = 0
        self._bound = round(ratio * LOW)
        self._limit = limit

    def takes(self, trace_id: bytes) -> bool:
        if int.from_bytes(trace_id[8:], "big") < self._bound and (self._limit is None or self._limit.admits()):
            self.taken += 1
            return True
        self.left_out += 1
        return False
