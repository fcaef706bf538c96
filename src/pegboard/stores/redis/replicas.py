"""The processes that serve together, on Redis: one hash, a field each."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pegboard.model import Replica
from pegboard.seams import Clock
from pegboard.stores.redis.server import RedisServer
from pegboard.stores.replicas import ALIVE

BEAT = """
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
local known = redis.call('HGETALL', KEYS[1])
local alive = {}
for at = 1, #known, 2 do
  if cjson.decode(known[at + 1])['ends'] > tonumber(ARGV[3]) then alive[#alive + 1] = known[at + 1]
  else redis.call('HDEL', KEYS[1], known[at]) end
end
return alive
"""


class RedisReplicas:
    def __init__(self, server: RedisServer, clock: Clock, *, ttl: float = ALIVE) -> None:
        self._server = server
        self._clock = clock
        self._ttl = ttl

    async def beat(self, replica: Replica) -> Sequence[Replica]:
        now = self._clock.time()
        value = json.dumps({"id": replica.id, "url": replica.url, "ends": now + self._ttl})
        alive = map(json.loads, await self._server.run(BEAT, [self._key], [replica.id, value, repr(now)]))
        return [Replica(id=each["id"], url=each["url"]) for each in sorted(alive, key=lambda each: str(each["id"]))]

    async def leave(self, replica: Replica) -> None:
        async with self._server.client() as client:
            await client.hdel(self._key, replica.id)

    async def count(self) -> int:
        """How many live."""
        async with self._server.client() as client:
            known = await client.hvals(self._key)
        return sum(json.loads(value)["ends"] > self._clock.time() for value in known)

    @property
    def _key(self) -> str:
        return self._server.key("replicas")
