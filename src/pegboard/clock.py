"""The time of the machine."""

from __future__ import annotations

import time


class SystemClock:
    def time(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


SYSTEM_CLOCK = SystemClock()
"""For whoever is not given another one."""
