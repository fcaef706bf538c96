"""Work that no answer waits for: records of a call, and the scan of its result."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

LOGGER = logging.getLogger(__name__)

PAUSE = 0.02
"""Seconds after an answer, in which it leaves this process and often the next request arrives."""

Work = Callable[[], object]


class AfterAnswer:
    """Does work in the order it came, a moment later, one piece in each turn of the event loop; `flush` does it all at
    once. Work that raises is logged, and the rest goes on.
    """

    def __init__(self, pause: float = PAUSE) -> None:
        self._pause = pause
        self._waiting: deque[Work] = deque()
        self._timer: asyncio.Handle | None = None

    def __call__(self, work: Work) -> None:
        self._waiting.append(work)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._pause, self._next)

    def flush(self) -> None:
        """Do now what is waiting."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting:
            _do(self._waiting.popleft())

    def _next(self) -> None:
        _do(self._waiting.popleft())
        self._timer = asyncio.get_running_loop().call_soon(self._next) if self._waiting else None


def _do(work: Work) -> None:
    try:
        work()
    except Exception:
        LOGGER.exception("The record of a call failed")
