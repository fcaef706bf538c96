"""One attempt for all who wait for the same thing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Together(Generic[T]):
    """Of several that ask while an attempt is under way, none begins another: a server that does not answer would keep
    them waiting one after the other."""

    def __init__(self, attempt: Callable[[], Awaitable[T]]) -> None:
        self._attempt = attempt
        self._running: asyncio.Task[T] | None = None

    async def __call__(self) -> T:
        """What the attempt returns or raises; it goes on where one who waits is cancelled."""
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._tried())
            self._running.add_done_callback(_heard)
        return await asyncio.shield(self._running)

    async def _tried(self) -> T:
        return await self._attempt()


def _heard(task: asyncio.Task[T]) -> None:
    """All who waited may have left: then nobody else takes note of how it ended."""
    if not task.cancelled():
        task.exception()
