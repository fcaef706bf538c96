"""Places at work, given in turns: who waits for many gets no more of them than who waits for one."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pegboard.errors import QuotaReached


class FairQueue:
    """At most ``width`` are at work at once, and never all of them for one owner, unless ``width`` is one: who comes
    has a place beside who has many. The owners that wait take turns, each with its first; an owner with ``most``
    waiting is refused more.

    >>> async def work() -> str:
    ...     async with FairQueue(1).place("acme"):
    ...         return "done"
    >>> asyncio.run(work())
    'done'
    """

    def __init__(self, width: int, most: int = 1_000) -> None:
        self._width = width
        self._each = max(1, width - 1)
        self._most = most
        self._at_work: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def place(self, owner: str) -> AsyncIterator[None]:
        """A place at work, waited for. Raises QuotaReached if the owner already waits for too many."""
        await self._enter(owner)
        try:
            yield
        finally:
            self._leave(owner)

    async def _enter(self, owner: str) -> None:
        line = self._waiting.setdefault(owner, deque())
        if len(line) >= self._most:
            raise QuotaReached(owner, "waiting requests", self._most)
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.append(mine)
        self._admit()
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self._leave(owner)  # the place came together with the cancellation
            elif mine in line:
                line.remove(mine)
                if not line:
                    del self._waiting[owner]
            raise

    def _leave(self, owner: str) -> None:
        self._at_work -= Counter((owner,))
        self._admit()

    def _admit(self) -> None:
        """Give each free place to the next owner in turn that waits and may have another."""
        while self._at_work.total() < self._width:
            owner = next((each for each in self._waiting if self._at_work[each] < self._each), None)
            if owner is None:
                return
            line = self._waiting[owner]
            first = line.popleft()
            if line:
                self._waiting.move_to_end(owner)
            else:
                del self._waiting[owner]
            if not first.done():
                self._at_work[owner] += 1
                first.set_result(None)
