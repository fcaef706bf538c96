"""Results that callers may read on, in memory."""

from __future__ import annotations

from collections import OrderedDict

from pegboard.protocols import Clock


class MemoryResults:
    """By owner, the one that ends first first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[str, OrderedDict[str, tuple[float, bytes]]] = {}

    async def put(self, owner: str, handle: str, body: bytes, *, seconds: float, most: int) -> bool:
        await self.expire()
        if len(body) > most:
            return False
        mine = self._kept.setdefault(owner, OrderedDict())
        mine[handle] = (self._clock.time() + seconds, body)
        mine.move_to_end(handle)
        while sum(len(each) for _, each in mine.values()) > most:
            mine.popitem(last=False)
        return True

    async def get(self, owner: str, handle: str) -> bytes | None:
        found = self._kept.get(owner, OrderedDict()).get(handle)
        return found[1] if found is not None and found[0] > self._clock.time() else None

    async def expire(self) -> int:
        now, removed = self._clock.time(), 0
        for owner, mine in list(self._kept.items()):
            over = [handle for handle, (ends, _) in mine.items() if ends <= now]
            removed += len(over)
            for handle in over:
                del mine[handle]
            if not mine:
                del self._kept[owner]
        return removed

    async def forget(self, owner: str | None = None) -> int:
        owners = list(self._kept) if owner is None else [owner]
        return sum(len(self._kept.pop(each, ())) for each in owners)
