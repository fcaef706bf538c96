"""One Redis server, and the prefix of all keys that belong to Pegboard."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from typing import Any
from urllib.parse import urlsplit

from pegboard.circuit_breaker import Breaker
from pegboard.errors import ConfigError, StoreError, ValueRefused
from pegboard.extras import required
from pegboard.model import ToolId
from pegboard.stores.database import Migration, SingleFlight, outstanding

MIGRATIONS = (
    Migration("hashes"),
    Migration(
        "last use",
        (
            "local now = redis.call('TIME')[1]",
            "for _, tool in ipairs(redis.call('HKEYS', ARGV[2] .. ':statistics')) do "
            "redis.call('ZADD', ARGV[2] .. ':statistics:used', now, tool) end",
            "for _, meter in ipairs(redis.call('HKEYS', ARGV[2] .. ':spend:spent')) do "
            "if string.sub(meter, 1, 4) ~= 'key ' then redis.call('ZADD', ARGV[2] .. ':spend:used', now, meter) end "
            "end",
        ),
    ),
    Migration("lessons"),
    Migration("texts of pins"),
    Migration("signing keys"),
    Migration("habits"),
    Migration("audit log"),
    Migration("rate limits"),
    Migration("kept results"),
    Migration(
        "rejections beside switches",
        (
            "local was, is = ARGV[2] .. ':switches', ARGV[2] .. ':switched'",
            "for _, tool in ipairs(redis.call('HKEYS', was)) do "
            "local value = redis.call('HGET', was, tool) "
            r"""local definition = string.match(value, '^%[("[^"\\]*"), ') or '""' """
            "local field = string.sub(tool, 1, -2) .. ', ' .. definition .. ']' "
            "redis.call('HSET', is, field, value) "
            "redis.call('ZADD', is .. ':at', redis.call('ZSCORE', was .. ':at', tool) or 0, field) end",
        ),
    ),
)
"""Statements are Lua, with the prefix of all keys in ARGV[2]. Existing rows count as used when they are migrated.
Switches are copied: processes of an older version still read them where they were."""
STEP = "if redis.call('SADD', KEYS[1], ARGV[1]) == 1 then {} end"


class RedisServer:
    """A pool of at most ``connections``; a command without an answer within ``timeout`` seconds raises StoreError.

    Nothing is sent twice: after a StoreError, a change may or may not have been made.
    """

    def __init__(
        self,
        url: str,
        *,
        prefix: str = "pegboard",
        connections: int = 16,
        timeout: float = 2.0,
        migrations: Sequence[Migration] = MIGRATIONS,
        breaker: Breaker[StoreError] | None = None,
    ) -> None:
        self._url = url
        self.prefix = prefix
        self._connections = connections
        self._timeout = timeout
        self._migrations = migrations
        self._breaker = breaker
        self._client: Any = None
        self._open = SingleFlight(self._opened)

    def key(self, *parts: str) -> str:
        return ":".join((self.prefix, *parts))

    async def run(self, script: str, keys: Sequence[str], arguments: Sequence[str | int | bytes]) -> Any:
        """The result of a Lua script, which runs atomically."""
        async with self.client() as client:
            return await client.register_script(script)(keys=list(keys), args=list(arguments))

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Any]:
        """The client, once migrations are applied. Raises StoreError, ConfigError."""
        with self.refusing():
            async with self._unbroken() as client:
                yield client

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Where text is encoded. Raises ValueRefused for what cannot be; nothing was sent, so the breaker stays
        closed."""
        try:
            yield
        except UnicodeEncodeError as error:
            raise ValueRefused(
                f"Redis at {self.place} cannot keep this: {error}.", remedy="Leave out half of a surrogate pair."
            ) from error

    @asynccontextmanager
    async def _unbroken(self) -> AsyncIterator[Any]:
        errors = required("redis.exceptions", "redis")
        with self._breaker.call() if self._breaker else nullcontext():
            try:
                yield self._client or await self._open()
            except (errors.RedisError, OSError) as error:
                if self._client is not None:  # pooled connections broke too, and would fail one by one
                    await self._client.connection_pool.disconnect(inuse_connections=False)
                raise StoreError(
                    f"Redis at {self.place} cannot be used: {str(error).rstrip('.')}.",
                    remedy="Check that it runs and that its address and password are right.",
                ) from error

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            await self._client.connection_pool.disconnect()
            self._client = None

    @property
    def place(self) -> str:
        """Host, port and database, without the password."""
        parts = urlsplit(self._url)
        return f"{parts.hostname or 'localhost'}:{parts.port or 6379}{parts.path}"

    async def _opened(self) -> Any:
        client = self._connected()
        try:
            await self._migrate(client)
        except BaseException:
            await client.connection_pool.disconnect()
            raise
        self._client = client
        return client

    def _connected(self) -> Any:
        redis = required("redis.asyncio", "redis")
        once = required("redis.asyncio.retry", "redis").Retry(required("redis.backoff", "redis").NoBackoff(), 0)
        try:
            pool = redis.BlockingConnectionPool.from_url(
                self._url,
                max_connections=self._connections,
                timeout=self._timeout,
                socket_timeout=self._timeout,
                socket_connect_timeout=self._timeout,
                retry=once,
            )
        except ValueError as error:
            raise ConfigError(
                "The address of Redis is not valid.", remedy="Write it as redis://HOST:PORT/0."
            ) from error
        return redis.Redis(connection_pool=pool)

    async def _migrate(self, client: Any) -> None:
        """Apply each step and record its name in one script, so that no other process can interleave."""
        ledger = self.key("migrations")
        applied = {name.decode() for name in await client.smembers(ledger)}
        for step in outstanding(self._migrations, applied, f"The Redis at {self.place} under {self.prefix!r}"):
            await client.eval(STEP.format(" ".join(step.statements)), 1, ledger, step.name, self.prefix)


def field_of(tool: ToolId) -> str:
    """The hash field of a tool."""
    return json.dumps(tool)


def tool_of(field: bytes) -> ToolId:
    return ToolId(*json.loads(field))
