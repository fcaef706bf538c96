"""Results that callers may read on, on Redis: a value each, and for each caller an index by their ends."""

from __future__ import annotations

from pegboard.protocols import Clock
from pegboard.stores.redis.database import RedisServer
from pegboard.stores.redis.record_stores import scanned

PUT = """
local now, ends, most, handle = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local keep = math.max(1, math.ceil((ends - now) * 1000))
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('SET', ARGV[6] .. handle, ARGV[5], 'PX', keep)
redis.call('ZADD', KEYS[1], ends, handle)
redis.call('PEXPIRE', KEYS[1], math.max(keep, redis.call('PTTL', KEYS[1])))
local taken = string.len(ARGV[5])
for _, each in ipairs(redis.call('ZREVRANGE', KEYS[1], 0, -1)) do
  if each ~= handle then
    taken = taken + redis.call('STRLEN', ARGV[6] .. each)
    if taken > most then
      redis.call('DEL', ARGV[6] .. each)
      redis.call('ZREM', KEYS[1], each)
    end
  end
end
"""
GET = """
local ends = redis.call('ZSCORE', KEYS[1], ARGV[2])
if not ends or tonumber(ends) <= tonumber(ARGV[1]) then return false end
return redis.call('GET', KEYS[2])
"""
FORGET = """
local handles = redis.call('ZRANGE', KEYS[1], 0, -1)
local removed = 0
for _, each in ipairs(handles) do removed = removed + redis.call('DEL', ARGV[1] .. each) end
redis.call('DEL', KEYS[1])
return removed
"""


class RedisResults:
    def __init__(self, server: RedisServer, clock: Clock) -> None:
        self._server = server
        self._clock = clock

    async def put(self, owner: str, handle: str, body: bytes, *, seconds: float, most: int) -> bool:
        if len(body) > most:
            return False
        now = self._clock.time()
        given: list[str | int | bytes] = [repr(now), repr(now + seconds), most, handle, body, self._value(owner, "")]
        await self._server.run(PUT, [self._index(owner)], given)
        return True

    async def get(self, owner: str, handle: str) -> bytes | None:
        keys = [self._index(owner), self._value(owner, handle)]
        found = await self._server.run(GET, keys, [repr(self._clock.time()), handle])
        return None if found is None else bytes(found)

    async def expire(self) -> int:
        """Redis removes values at their end by itself."""
        return 0

    async def forget(self, owner: str | None = None) -> int:
        owners = await self._owners() if owner is None else [owner]
        removed = [await self._server.run(FORGET, [self._index(each)], [self._value(each, "")]) for each in owners]
        return sum(map(int, removed))

    async def _owners(self) -> list[str]:
        async with self._server.client() as client:
            return await scanned(client, self._server, "results")

    def _index(self, owner: str) -> str:
        return self._server.key("results", owner)

    def _value(self, owner: str, handle: str) -> str:
        return self._server.key("result", owner, handle)
