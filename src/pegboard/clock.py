"""The system clock."""

from __future__ import annotations

from time import monotonic, time


class SystemClock:
    """The functions of the standard library themselves: a call asks several times what time it is."""

    time = staticmethod(time)
    monotonic = staticmethod(monotonic)


SYSTEM_CLOCK = SystemClock()
"""The default clock."""
