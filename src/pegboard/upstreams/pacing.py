"""Progress on its way to a caller who may take it slowly, or not at all."""

from __future__ import annotations

import asyncio
from collections import deque

from mcp.shared.dispatcher import ProgressFnT

MOST_WAITING = 100


class Paced:
    """The reports of one call, in order, one at a time.

    The SDK starts a task for each report: of a caller who takes none, they would be without end. Of more than
    ``MOST_WAITING`` that wait, the oldest are left out, which the later ones say as well.
    """

    def __init__(self, report: ProgressFnT) -> None:
        self._report = report
        self._waiting: deque[tuple[float, float | None, str | None]] = deque(maxlen=MOST_WAITING)
        self._idle = asyncio.Event()
        self._idle.set()

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        self._waiting.append((progress, total, message))
        if not self._idle.is_set():
            return
        self._idle.clear()
        try:
            while self._waiting:
                await self._report(*self._waiting.popleft())
        finally:
            self._idle.set()
