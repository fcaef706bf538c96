"""Sessions, signing keys and replicas on Redis."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from pegboard.errors import SessionConflict
from pegboard.model import Replica, Session, SigningKey
from pegboard.protocols import Clock
from pegboard.records import Key, SessionRecord, SessionState
from pegboard.stores.redis.database import RedisServer
from pegboard.stores.redis.record_stores import RecordStore, scanned
from pegboard.stores.retention import ALIVE
from pegboard.stores.sessions import decode_session, encode_session, in_order, signing_key

SAVE = """
local known = redis.call('HMGET', KEYS[1], 'version', 'expires')
local version = '0'
if known[1] and tonumber(known[2]) > tonumber(ARGV[5]) then version = known[1] end
if version ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'version', ARGV[2], 'expires', ARGV[3], 'state', ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[6])
return 1
"""
MOST_MS = 10 * 365 * 86_400_000
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
SHARE = """
for at = 2, #ARGV, 2 do redis.call('HSETNX', KEYS[1], ARGV[at], ARGV[at + 1]) end
local known = redis.call('HGETALL', KEYS[1])
local kept = {}
for at = 1, #known, 2 do
  if cjson.decode(known[at + 1])['made'] >= tonumber(ARGV[1]) then kept[#kept + 1] = known[at + 1]
  else redis.call('HDEL', KEYS[1], known[at]) end
end
return kept
"""
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


class RedisSessions:
    """Sessions, each for ``ttl`` seconds after its last change; Redis expires them."""

    def __init__(self, server: RedisServer, clock: Clock, *, ttl: float) -> None:
        self._server = server
        self._clock = clock
        self._ttl = ttl

    async def load(self, key: str) -> Session | None:
        async with self._server.client() as client:
            version, expires, state = await client.hmget(self._key(key), "version", "expires", "state")
        if version is None or float(expires) <= self._clock.time():
            return None
        return decode_session(key, int(version), state.decode())

    async def save(self, session: Session) -> Session:
        saved = replace(session, version=session.version + 1)
        now = self._clock.time()
        values = (
            session.version,
            saved.version,
            repr(now + self._ttl),
            encode_session(saved),
            repr(now),
            self._milliseconds,
        )
        if not await self._server.run(SAVE, [self._key(session.id)], values):
            raise SessionConflict
        return saved

    async def forget(self, key: str) -> None:
        async with self._server.client() as client:
            await client.delete(self._key(key))

    @property
    def _milliseconds(self) -> int:
        return max(1, int(min(self._ttl * 1000, MOST_MS)))

    def _key(self, key: str) -> str:
        return key_of_session(self._server, key)


class SessionRecords(RecordStore[SessionRecord]):
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


class RedisSigningKeys:
    def __init__(self, server: RedisServer) -> None:
        self._server = server

    async def share(self, keys: Sequence[SigningKey], *, forget: float) -> Sequence[SigningKey]:
        values = [repr(forget)]
        for key in keys:
            values += [key.id, json.dumps({"id": key.id, "made": key.made, "secret": key.secret.hex()})]
        kept = await self._server.run(SHARE, [self._server.key("signing_keys")], values)
        return in_order(signing_key(**json.loads(each)) for each in kept)


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
        """The number of live replicas."""
        async with self._server.client() as client:
            known = await client.hvals(self._key)
        return sum(json.loads(value)["ends"] > self._clock.time() for value in known)

    @property
    def _key(self) -> str:
        return self._server.key("replicas")


def key_of_session(server: RedisServer, key: str) -> str:
    return server.key("session", key)
