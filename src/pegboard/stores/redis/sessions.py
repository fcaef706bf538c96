"""Sessions on Redis, which forgets them by itself."""

from __future__ import annotations

from dataclasses import replace

from pegboard.errors import SessionConflict
from pegboard.model import Session
from pegboard.seams import Clock
from pegboard.stores.redis.server import RedisServer
from pegboard.stores.sessions import decoded, encoded

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


class RedisSessions:
    """Each for ``ttl`` seconds after its last change."""

    def __init__(self, server: RedisServer, clock: Clock, *, ttl: float) -> None:
        self._server = server
        self._clock = clock
        self._ttl = ttl

    async def load(self, key: str) -> Session | None:
        async with self._server.client() as client:
            version, expires, state = await client.hmget(self._key(key), "version", "expires", "state")
        if version is None or float(expires) <= self._clock.time():
            return None
        return decoded(key, int(version), state.decode())

    async def save(self, session: Session) -> Session:
        saved = replace(session, version=session.version + 1)
        now = self._clock.time()
        values = (session.version, saved.version, repr(now + self._ttl), encoded(saved), repr(now), self._milliseconds)
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


def key_of_session(server: RedisServer, key: str) -> str:
    return server.key("session", key)
