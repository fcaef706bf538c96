"""Lessons on Redis: one hash, a field a key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple

from pegboard.clock import SYSTEM_CLOCK
from pegboard.seams import Clock
from pegboard.stores.batches import batches
from pegboard.stores.lessons import COLUMNS
from pegboard.stores.redis.server import RedisServer
from pegboard.traffic import MOST, Seen

ADD = """
local function numbers(text)
  local found = {}
  for value in string.gmatch(text, '%S+') do found[#found + 1] = tonumber(value) end
  return found
end
local most, conversations, now = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
for at = 4, #ARGV, 2 do
  local sums, known = numbers(ARGV[at + 1]), redis.call('HGET', KEYS[1], ARGV[at])
  if known then
    known = numbers(known)
    local weight = known[conversations] < most and 1 or 0.5
    for each = 1, #sums do sums[each] = weight * known[each] + sums[each] end
  end
  for each = 1, #sums do sums[each] = string.format('%.17g', sums[each]) end
  redis.call('HSET', KEYS[1], ARGV[at], table.concat(sums, ' '))
  redis.call('ZADD', KEYS[2], now, ARGV[at])
end
"""
"""`Seen.joined` in Lua: where enough is known, which of the sums says so, the time, then a key and its sums each."""


class RedisLessons:
    def __init__(self, server: RedisServer, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._server = server
        self._clock = clock

    async def add(self, sums: Mapping[str, Seen]) -> None:
        constants = (repr(MOST), COLUMNS.index("conversations") + 1, repr(self._clock.time()))
        for some in batches(sums.items()):
            values = [value for key, seen in some for value in (key, text_of(astuple(seen)))]
            await self._server.run(ADD, shared_keys(self._server), [*constants, *values])

    async def read(self, keys: Sequence[str]) -> Mapping[str, Seen]:
        found: dict[str, Seen] = {}
        async with self._server.client() as client:
            for some in batches(dict.fromkeys(keys)):
                values = await client.hmget(shared_keys(self._server)[0], some)
                found |= {key: seen_of(value) for key, value in zip(some, values, strict=True) if value is not None}
        return found


def shared_keys(server: RedisServer) -> tuple[str, str]:
    """The sums, and when each key was last added to."""
    return server.key("lessons"), server.key("lessons", "used")


def text_of(sums: Sequence[float]) -> str:
    return " ".join(repr(float(each)) for each in sums)


def seen_of(value: bytes) -> Seen:
    return Seen(**dict(zip(COLUMNS, map(float, value.split()), strict=True)))
