"""What a kind of record is on Redis: how its names are found, and how it is read, added and removed."""

from __future__ import annotations

import glob
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from pegboard.records import Key, Record
from pegboard.seams import Clock
from pegboard.stores.batches import BATCH
from pegboard.stores.redis.server import RedisServer

REMOVE_OLD = """
local old = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
for _, field in ipairs(old) do
  redis.call('HDEL', KEYS[1], field)
  redis.call('ZREM', KEYS[2], field)
end
return #old
"""

R = TypeVar("R", bound=Record)


class Shelf(ABC, Generic[R]):
    """All records of one kind. ``client`` is the server's; keys and records come in batches."""

    def __init__(self, server: RedisServer, clock: Clock) -> None:
        self.server = server
        self.clock = clock

    @abstractmethod
    async def names(self, client: Any) -> list[Key]:
        """In their order."""

    @abstractmethod
    async def read(self, client: Any, keys: Sequence[Key]) -> list[R]:
        """Those that are still there."""

    @abstractmethod
    async def add(self, records: Sequence[R]) -> int:
        """How many were better than what was there."""

    @abstractmethod
    async def remove(self, client: Any, keys: Sequence[Key]) -> int: ...

    async def remove_old(self, client: Any, before: float) -> int:
        """Nothing, where Redis forgets by itself."""
        return 0

    async def count(self, client: Any) -> int:
        return len(await self.names(client))


async def scanned(client: Any, server: RedisServer, *parts: str) -> list[str]:
    """What follows these parts in the keys that begin with them, in order."""
    start = server.key(*parts, "")
    found = {key.decode() async for key in client.scan_iter(match=f"{glob.escape(start)}*", count=5 * BATCH)}
    return sorted(key.removeprefix(start) for key in found)


class HashShelf(Shelf[R]):
    """Fields of a hash. A second key says when each was last used, or is a hash with the same fields."""

    script: ClassVar[str]

    @abstractmethod
    def keys(self) -> tuple[str, ...]: ...

    @abstractmethod
    def field(self, key: Key) -> str: ...

    @abstractmethod
    def key(self, field: bytes) -> Key: ...

    @abstractmethod
    def arguments(self, record: R) -> tuple[str | int, ...]:
        """The value of the field, and that in each further key."""

    async def names(self, client: Any) -> list[Key]:
        return sorted(map(self.key, await client.hkeys(self.keys()[0])))

    async def count(self, client: Any) -> int:
        return int(await client.hlen(self.keys()[0]))

    async def add(self, records: Sequence[R]) -> int:
        values = [value for record in records for value in (self.field(record.identity), *self.arguments(record))]
        return int(await self.server.run(self.script, self.keys(), values))

    async def values(self, client: Any, fields: Sequence[str]) -> Iterable[tuple[bytes | None, Any]]:
        """Of each field the value, and when it was last used."""
        commands = client.pipeline(transaction=False)
        commands.hmget(self.keys()[0], fields)
        for field in fields:
            commands.zscore(self.keys()[1], field)
        values, *used = await commands.execute()
        return zip(values, used, strict=True)

    async def remove(self, client: Any, keys: Sequence[Key]) -> int:
        fields = list(map(self.field, keys))
        commands = client.pipeline()
        commands.hdel(self.keys()[0], *fields)
        commands.zrem(self.keys()[1], *fields)
        return int((await commands.execute())[0])

    async def remove_old(self, client: Any, before: float) -> int:
        removed, script = 0, client.register_script(REMOVE_OLD)
        while gone := int(await script(keys=self.keys(), args=[repr(before), BATCH])):
            removed += gone
        return removed
