"""What use taught, on Redis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np

from pegboard.clock import SYSTEM_CLOCK
from pegboard.habits import HALF_LIFE, Habit, HabitKey
from pegboard.model import Floats
from pegboard.protocols import Clock
from pegboard.records import HabitRecord, Key
from pegboard.stores.database import BATCH, batches
from pegboard.stores.redis.database import RedisServer
from pegboard.stores.redis.record_stores import HashRecordStore

SEPARATOR = "\0"
"""Between the parts of a field's name; only the last part may contain it."""
PARTS = 3
SUMS = np.dtype("<f4")
ADDED = 50
"""Rows that one script adds to: other clients wait meanwhile."""
ADD = """
local now, half_life = tonumber(ARGV[1]), tonumber(ARGV[2])
for at = 3, #ARGV, 2 do
  local sums, used = ARGV[at + 1], now
  local known = redis.call('HGET', KEYS[1], ARGV[at])
  if known then
    local before = tonumber(redis.call('ZSCORE', KEYS[2], ARGV[at]) or now)
    used = math.max(now, before)
    if #known == #sums then
      local weight, joined = 2 ^ (-math.max(0, now - before) / half_life), {}
      for byte = 1, #sums, 4 do
        joined[#joined + 1] = struct.pack('<f', weight * struct.unpack('<f', known, byte)
          + struct.unpack('<f', sums, byte))
      end
      sums = table.concat(joined)
    end
  end
  redis.call('HSET', KEYS[1], ARGV[at], sums)
  redis.call('ZADD', KEYS[2], string.format('%.17g', used), ARGV[at])
  redis.call('ZADD', KEYS[3], 0, ARGV[at])
end
"""
"""`Habit.joined` in Lua. Arguments: the time, the half-life, then fields and their sums."""
WRITE = """
local taken = 0
for at = 1, #ARGV, 3 do
  local known = redis.call('ZSCORE', KEYS[2], ARGV[at])
  if not known or tonumber(known) < tonumber(ARGV[at + 2]) then
    redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1])
    redis.call('ZADD', KEYS[2], ARGV[at + 2], ARGV[at])
    redis.call('ZADD', KEYS[3], 0, ARGV[at])
    taken = taken + 1
  end
end
return taken
"""
REMOVE_OLD = """
local old = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
for _, field in ipairs(old) do
  for at, command in ipairs({'HDEL', 'ZREM', 'ZREM'}) do redis.call(command, KEYS[at], field) end
end
return #old
"""


class RedisHabits:
    def __init__(self, server: RedisServer, *, half_life: float = HALF_LIFE, clock: Clock = SYSTEM_CLOCK) -> None:
        self._server = server
        self._half_life = half_life
        self._clock = clock

    async def add(self, sums: Mapping[HabitKey, Floats]) -> None:
        constants = (repr(self._clock.time()), repr(self._half_life))
        with self._server.refusing():  # all or none: what is added twice counts twice
            rows = [(SEPARATOR.join(key).encode(), more.astype(SUMS).tobytes()) for key, more in sums.items()]
        for some in batches(rows, ADDED):
            values = [value for row in some for value in row]
            await self._server.run(ADD, habit_keys(self._server), [*constants, *values])

    async def read(self, keys: Sequence[str]) -> Mapping[HabitKey, Habit]:
        hash_, used, names = habit_keys(self._server)
        found: dict[HabitKey, Habit] = {}
        async with self._server.client() as client:
            for each in dict.fromkeys(keys):
                first, last = f"[{each}{SEPARATOR}", f"({each}{chr(1)}"
                fields = await client.zrangebylex(names, first, last)
                for some in batches(fields):
                    commands = client.pipeline(transaction=False)
                    commands.hmget(hash_, some)
                    for field in some:
                        commands.zscore(used, field)
                    values, *times = await commands.execute()
                    found |= {
                        HabitKey(*parts): Habit(sums=np.frombuffer(value, SUMS), used=time)
                        for field, value, time in zip(some, values, times, strict=True)
                        if len(parts := _parts(field)) == PARTS and _is_whole(value)
                    }
        return found


class HabitRecords(HashRecordStore[HabitRecord]):
    """A third key has the names alone, in order, so that those of one caller are found."""

    script = WRITE

    def keys(self) -> tuple[str, str, str]:
        return habit_keys(self.server)

    def field(self, key: Key) -> str:
        return SEPARATOR.join(key)

    def key(self, field: bytes) -> Key:
        return _parts(field)

    async def names(self, client: Any) -> list[Key]:
        return [key for key in await super().names(client) if len(key) == PARTS]

    def arguments(self, record: HabitRecord) -> tuple[Any, ...]:
        return record.sums, repr(record.used)

    async def read(self, client: Any, keys: Sequence[Key]) -> list[HabitRecord]:
        found = zip(keys, await self.values(client, list(map(self.field, keys))), strict=True)
        return [
            HabitRecord(key=key, server=server, name=name, sums=value, used=used)
            for (key, server, name), (value, used) in found
            if value is not None
        ]

    async def remove(self, client: Any, keys: Sequence[Key]) -> int:
        fields = list(map(self.field, keys))
        commands = client.pipeline()
        commands.hdel(self.keys()[0], *fields)
        for key in self.keys()[1:]:
            commands.zrem(key, *fields)
        return int((await commands.execute())[0])

    async def remove_old(self, client: Any, before: float) -> int:
        removed, script = 0, client.register_script(REMOVE_OLD)
        while gone := int(await script(keys=self.keys(), args=[repr(before), BATCH])):
            removed += gone
        return removed


def habit_keys(server: RedisServer) -> tuple[str, str, str]:
    """The keys of the sums, of the time each was last added to, and of their names in order."""
    return server.key("habits"), server.key("habits", "used"), server.key("habits", "names")


def _parts(field: bytes) -> Key:
    """Key, server and name; fewer in a field that is none of ours."""
    return tuple(field.decode(errors="replace").split(SEPARATOR, PARTS - 1))


def _is_whole(value: bytes | None) -> TypeGuard[bytes]:
    """Whether a row is there and can be read."""
    return value is not None and len(value) % SUMS.itemsize == 0
