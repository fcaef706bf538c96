"""How a kind of record is listed, read, added and removed on Redis."""

from __future__ import annotations

import glob
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from pegboard.protocols import Clock
from pegboard.records import Key, Record
from pegboard.stores.database import BATCH
from pegboard.stores.redis.database import RedisServer

ADD_STAMPED = """
local taken = 0
for at = 1, #ARGV, 3 do
  local known = redis.call('ZSCORE', KEYS[2], ARGV[at])
  if not known or tonumber(known) < tonumber(ARGV[at + 2]) then
    redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1])
    redis.call('ZADD', KEYS[2], ARGV[at + 2], ARGV[at])
    taken = taken + 1
  end
end
return taken
"""
REMOVE_OLD = """
local old = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
for _, field in ipairs(old) do
  redis.call('HDEL', KEYS[1], field)
  redis.call('ZREM', KEYS[2], field)
end
return #old
"""
R = TypeVar("R", bound=Record)


class RecordStore(ABC, Generic[R]):
    """All records of one kind. ``client`` is the Redis client; keys and records come in batches."""

    def __init__(self, server: RedisServer, clock: Clock) -> None:
        self.server = server
        self.clock = clock

    @abstractmethod
    async def names(self, client: Any) -> list[Key]:
        """The keys of all records, sorted."""

    @abstractmethod
    async def read(self, client: Any, keys: Sequence[Key]) -> list[R]:
        """The records that still exist."""

    @abstractmethod
    async def add(self, records: Sequence[R]) -> int:
        """Add records that are better than the stored ones; the number added."""

    @abstractmethod
    async def remove(self, client: Any, keys: Sequence[Key]) -> int: ...

    async def remove_old(self, client: Any, before: float) -> int:
        """Remove records last used before a time; 0 if Redis expires them itself."""
        return 0

    async def count(self, client: Any) -> int:
        return len(await self.names(client))


class HashRecordStore(RecordStore[R]):
    """Records as fields of a hash. A second key has the time of last use, or is another hash with the same fields."""

    script: ClassVar[str]

    @abstractmethod
    def keys(self) -> tuple[str, ...]: ...

    @abstractmethod
    def field(self, key: Key) -> str: ...

    @abstractmethod
    def key(self, field: bytes) -> Key: ...

    @abstractmethod
    def arguments(self, record: R) -> tuple[str | int, ...]:
        """The values of the field in each of the keys."""

    async def names(self, client: Any) -> list[Key]:
        return sorted(map(self.key, await client.hkeys(self.keys()[0])))

    async def count(self, client: Any) -> int:
        return int(await client.hlen(self.keys()[0]))

    async def add(self, records: Sequence[R]) -> int:
        values = [value for record in records for value in (self.field(record.identity), *self.arguments(record))]
        return int(await self.server.run(self.script, self.keys(), values))

    async def values(self, client: Any, fields: Sequence[str]) -> Iterable[tuple[bytes | None, Any]]:
        """The value of each field, and when it was last used."""
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


async def scanned(client: Any, server: RedisServer, *parts: str) -> list[str]:
    """The rest of every key that begins with these parts, sorted."""
    start = server.key(*parts, "")
    found = {key.decode() async for key in client.scan_iter(match=f"{glob.escape(start)}*", count=5 * BATCH)}
    return sorted(key.removeprefix(start) for key in found)
