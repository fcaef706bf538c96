"""A thread that gets the processor time which nothing else wants, and does not starve."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from pegboard.operating_system import yield_wholly

STARVED = 10.0
"""Seconds for each of processor time, from which on a piece of work counts as starved: a low priority gets that too."""
T = TypeVar("T")


class IdleThread:
    """Runs pieces of work on a thread that never takes a core from others; the piece after one that starved runs on the
    caller's, so that work goes on where no core is ever free.

    >>> IdleThread().run(lambda: 2 + 2)
    4
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "idle", initializer=yield_wholly)
        self.starved = False
        """Whether the last piece was; the next one then is none."""

    def run(self, work: Callable[[], T]) -> T:
        if self.starved:
            self.starved = False
            return work()

        def timed() -> tuple[T, float]:
            before = time.thread_time()
            made = work()
            return made, time.thread_time() - before

        began = time.monotonic()
        made, busy = self._thread.submit(timed).result()
        self.starved = time.monotonic() - began > STARVED * max(busy, time.get_clock_info("thread_time").resolution)
        return made
