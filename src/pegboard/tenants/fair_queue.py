"""Places at work, given in turns: who waits for many gets no more of them than who waits for one."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pegboard.errors import QuotaReached


class FairQueue:
    """At most ``width`` are at work at once. The owners that wait take turns, each with its first; an owner with
    ``most`` waiting is refused more.

    >>> async def work() -> str:
    ...     async with FairQueue(1).place("acme"):
    ...         return "done"
    >>> asyncio.run(work())
    'done'
    """

    def __init__(self, width: int, most: int = 1_000) -> None:
        self._width = width
        self._most = most
        self._at_work = 0
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def place(self, owner: str) -> AsyncIterator[None]:
        """A place at work, waited for. Raises QuotaReached if the owner already waits for too many."""
        await self._enter(owner)
        try:
            yield
        finally:
            self._leave()

    async def _enter(self, owner: str) -> None:
        if self._at_work < self._width and not self._waiting:
            self._at_work += 1
            return
        line = self._waiting.setdefault(owner, deque())
        if len(line) >= self._most:
            raise QuotaReached(owner, "waiting requests", self._most)
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.append(mine)
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self._leave()  # the place came together with the cancellation
            raise

    def _leave(self) -> None:
        """Give the place to the next owner in turn that waits, or to nobody."""
        while self._waiting:
            owner, line = next(iter(self._waiting.items()))
            first = line.popleft()
            if line:
                self._waiting.move_to_end(owner)
            else:
                del self._waiting[owner]
            if not first.done():
                first.set_result(None)
                return
        self._at_work -= 1
