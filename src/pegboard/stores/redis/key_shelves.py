"""Records that are keys of their own on Redis, and those held back on several."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pegboard.records import EmbeddingRecord, HoldRecord, Key, SessionRecord, SessionState
from pegboard.stores.batches import batches
from pegboard.stores.redis import spend
from pegboard.stores.redis.embeddings import key_of_embedding
from pegboard.stores.redis.sessions import MOST_MS, key_of_session
from pegboard.stores.redis.shelves import Shelf, scanned
from pegboard.stores.spend import LATE

ADD_SESSIONS = """
local taken = 0
for at = 1, #KEYS do
  local first = (at - 1) * 4
  local known = redis.call('HGET', KEYS[at], 'expires')
  if not known or tonumber(known) < tonumber(ARGV[first + 2]) then
    redis.call('HSET', KEYS[at], 'version', ARGV[first + 1], 'expires', ARGV[first + 2], 'state', ARGV[first + 3])
    redis.call('PEXPIRE', KEYS[at], ARGV[first + 4])
    taken = taken + 1
  end
end
return taken
"""
ADD_HOLDS = """
local taken = 0
for at = 1, #ARGV, 4 do
  if redis.call('ZADD', KEYS[1], 'NX', ARGV[at + 2], ARGV[at]) == 1 then
    for meter = 1, 3 do
      local held = KEYS[1 + (at - 1) / 4 * 3 + meter]
      redis.call('HSET', held, ARGV[at], ARGV[at + 1] .. ' ' .. ARGV[at + 2])
      if redis.call('PTTL', held) < tonumber(ARGV[at + 3]) then redis.call('PEXPIRE', held, ARGV[at + 3]) end
    end
    taken = taken + 1
  end
end
return taken
"""


class SessionShelf(Shelf[SessionRecord]):
    async def names(self, client: Any) -> list[Key]:
        return [(name,) for name in await scanned(client, self.server, "session")]

    async def read(self, client: Any, keys: Sequence[Key]) -> list[SessionRecord]:
        commands = client.pipeline(transaction=False)
        for (key,) in keys:
            commands.hmget(key_of_session(self.server, key), "version", "expires", "state")
        return [
            SessionRecord(
                key=key, version=int(version), expires=float(expires), state=SessionState(**json.loads(state))
            )
            for (key,), (version, expires, state) in zip(keys, await commands.execute(), strict=True)
            if version is not None
        ]

    async def add(self, records: Sequence[SessionRecord]) -> int:
        now, values = self.clock.time(), list[str | int]()
        for each in records:
            state = json.dumps(asdict(each.state), separators=(",", ":"))
            left = max(1, int(min((each.expires - now) * 1000, MOST_MS)))
            values += [each.version, repr(each.expires), state, left]
        keys = [key_of_session(self.server, each.key) for each in records]
        return int(await self.server.run(ADD_SESSIONS, keys, values))

    async def remove(self, client: Any, keys: Sequence[Key]) -> int:
        return int(await client.delete(*(key_of_session(self.server, key) for (key,) in keys)))


class EmbeddingShelf(Shelf[EmbeddingRecord]):
    def __init__(self, *given: Any, ttl: float | None) -> None:
        super().__init__(*given)
        self._keep = None if ttl is None else max(1, int(ttl * 1000))

    async def names(self, client: Any) -> list[Key]:
        return [(name,) for name in await scanned(client, self.server, "embedding")]

    async def read(self, client: Any, keys: Sequence[Key]) -> list[EmbeddingRecord]:
        vectors = await client.mget([key_of_embedding(self.server, key) for (key,) in keys])
        found = zip(keys, vectors, strict=True)
        return [EmbeddingRecord(key=key, vector=vector) for (key,), vector in found if vector is not None]

    async def add(self, records: Sequence[EmbeddingRecord]) -> int:
        async with self.server.client() as client:
            commands = client.pipeline(transaction=False)
            for each in records:
                commands.set(key_of_embedding(self.server, each.key), each.vector, px=self._keep, nx=True)
            return sum(map(bool, await commands.execute()))

    async def remove(self, client: Any, keys: Sequence[Key]) -> int:
        return int(await client.delete(*(key_of_embedding(self.server, key) for (key,) in keys)))


class HoldShelf(Shelf[HoldRecord]):
    """Few at any time: they are those of calls under way."""

    async def names(self, client: Any) -> list[Key]:
        return sorted((each.reservation,) for each in await self._all(client))

    async def read(self, client: Any, keys: Sequence[Key]) -> list[HoldRecord]:
        found = {each.identity: each for each in await self._all(client)}
        return [found[key] for key in keys if key in found]

    async def add(self, records: Sequence[HoldRecord]) -> int:
        now, values, keys = self.clock.time(), list[str | int](), [spend.shared_keys(self.server)[1]]
        for each in records:
            keep = int((each.expires - now + LATE) * 1000)
            values += [each.reservation, each.amount, repr(each.expires), keep]
            keys += [spend.held_key(self.server, meter) for meter in each.meters]
        return int(await self.server.run(ADD_HOLDS, keys, values))

    async def remove(self, client: Any, keys: Sequence[Key]) -> int:
        commands = client.pipeline()
        commands.zrem(spend.shared_keys(self.server)[1], *(reservation for (reservation,) in keys))
        for each in await self.read(client, keys):
            for meter in each.meters:
                commands.hdel(spend.held_key(self.server, meter), each.reservation)
        return int((await commands.execute())[0])

    async def remove_old(self, client: Any, before: float) -> int:
        return int(await client.zremrangebyscore(spend.shared_keys(self.server)[1], "-inf", repr(before)))

    async def count(self, client: Any) -> int:
        return int(await client.zcount(spend.shared_keys(self.server)[1], f"({self.clock.time() - LATE!r}", "+inf"))

    async def _all(self, client: Any) -> list[HoldRecord]:
        """Each is in the hashes of its three meters."""
        found: dict[str, dict[str, Any]] = defaultdict(dict)
        for some in batches(await scanned(client, self.server, "spend", "held")):
            running = list(map(spend.meter_of, some))
            commands = client.pipeline(transaction=False)
            for meter in running:
                commands.hgetall(spend.held_key(self.server, meter))
            for meter, held in zip(running, await commands.execute(), strict=True):
                for reservation, value in held.items():
                    amount, expires = value.split()
                    name = "caller" if meter.kind == "key" else meter.kind
                    found[reservation.decode()] |= {name: meter.name, "amount": int(amount), "expires": float(expires)}
        whole = len(("session", "caller", "day", "amount", "expires"))
        return [
            HoldRecord(reservation=reservation, **fields)
            for reservation, fields in found.items()
            if len(fields) == whole
        ]
