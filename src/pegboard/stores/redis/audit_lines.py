"""The audit log on Redis: a list of lines, changed only if the ends of the chain are still those that were read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from pegboard.audit_entries import AuditEntry, Link
from pegboard.errors import PegboardError
from pegboard.stores.audit_chain import MOST_UNSURE, appended, ends_of, hash_in, removable, shortened
from pegboard.stores.database import BATCH
from pegboard.stores.redis.database import RedisServer

APPEND = """
if (redis.call('GET', KEYS[2]) or '') ~= ARGV[1] then return 0 end
for at = 3, #ARGV do redis.call('RPUSH', KEYS[1], ARGV[at]) end
redis.call('SET', KEYS[2], ARGV[2])
return 1
"""
REMOVE = """
if (redis.call('GET', KEYS[2]) or '') ~= ARGV[1] then return 0 end
redis.call('LTRIM', KEYS[1], ARGV[3], -1)
redis.call('SET', KEYS[2], ARGV[2])
return 1
"""


class RedisAudit:
    """The Redis server must persist its data and must not evict keys."""

    def __init__(self, server: RedisServer, *, key: bytes = b"") -> None:
        self._server = server
        self._key = key
        self._unsure: dict[tuple[AuditEntry, ...], Link] = {}
        """The last lines of appends that got no answer, by their entries: if these come again, they may be there."""

    async def append(self, entries: Sequence[AuditEntry]) -> None:
        """Once, also if an earlier append of the same entries got no answer."""
        given = tuple(entries)
        while True:
            before = await self.ends()
            if self._unsure and await self._has(self._unsure.get(given), before):
                break
            lines, ends = appended(given, before, self._key)
            try:
                if await self._server.run(APPEND, self._keys, [before, ends, *lines]):
                    break
            except PegboardError:
                self._unsure[given] = ends_of(ends).last
                while len(self._unsure) > MOST_UNSURE:
                    del self._unsure[next(iter(self._unsure))]
                raise
        if self._unsure:
            self._unsure.pop(given, None)

    async def read(self) -> AsyncIterator[bytes]:
        read, removed = 0, ends_of(await self.ends()).removed.number
        while True:
            removed, lines = await self._after(read, removed)
            if not lines:
                return
            for line in lines:
                yield line
            read = max(read, removed) + len(lines)

    async def ends(self) -> str:
        async with self._server.client() as client:
            return (await client.get(self._keys[1]) or b"").decode()

    async def remove(self, before: float) -> int:
        removed = 0
        while True:
            ends = await self.ends()
            old = removable(await self._lines(0), before)
            if not old:
                return removed
            values: list[str | int] = [ends, shortened(ends, old[-1], self._key), len(old)]
            removed += len(old) if await self._server.run(REMOVE, self._keys, values) else 0

    async def _after(self, read: int, removed: int) -> tuple[int, list[bytes]]:
        """How many lines are removed, and a page of those after the first ``read``. Places in the list count from the
        first line that is left: another process may have removed more than ``removed`` meanwhile."""
        while True:
            at = max(0, read - removed)
            async with self._server.client() as client:
                page = client.pipeline(transaction=True).lrange(self._keys[0], at, at + BATCH - 1).get(self._keys[1])
                lines, ends = await page.execute()
            now = ends_of(ends or b"").removed.number
            if now == removed:
                return removed, list(lines)
            removed = now

    async def _has(self, last: Link | None, ends: str) -> bool:
        """Whether this line is in the log. One that comes later changes the ``ends``."""
        place = -1 if last is None else last.number - ends_of(ends).removed.number - 1
        if last is None or place < 0:
            return False
        async with self._server.client() as client:
            line = await client.lindex(self._keys[0], place)
        return line is not None and hash_in(line) == last.hash

    async def _lines(self, at: int) -> list[bytes]:
        async with self._server.client() as client:
            return list(await client.lrange(self._keys[0], at, at + BATCH - 1))

    @property
    def _keys(self) -> tuple[str, str]:
        return self._server.key("audit", "lines"), self._server.key("audit", "ends")
