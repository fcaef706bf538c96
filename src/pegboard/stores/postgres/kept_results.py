"""Results that callers may read on, in PostgreSQL."""

from __future__ import annotations

from typing import Any

from pegboard.protocols import Clock
from pegboard.stores.postgres.database import PostgresDatabase, fetch
from pegboard.stores.sql import result_rows

PUT, EVICT, GET, FORGET = (
    statement.format("%s") for statement in (result_rows.PUT, result_rows.EVICT, result_rows.GET, result_rows.FORGET)
)
EXPIRE = (
    "DELETE FROM kept_results WHERE (owner, handle) IN "
    "(SELECT owner, handle FROM kept_results WHERE expires <= %s FOR UPDATE SKIP LOCKED)"
)
LOCK = "SELECT pg_advisory_xact_lock(hashtext(%s))"
"""One caller's results are put one after the other, so that together they keep within the limit."""


class PostgresResults:
    def __init__(self, database: PostgresDatabase, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def put(self, owner: str, handle: str, body: bytes, *, seconds: float, most: int) -> bool:
        if len(body) > most:
            return False
        now = self._clock.time()

        async def write(connection: Any) -> None:
            await connection.execute(LOCK, (owner,))
            await connection.execute(EXPIRE, (now,))
            await connection.execute(PUT, (owner, handle, now + seconds, len(body), body))
            await connection.execute(EVICT, (owner, handle, owner, most))

        await self._database.run(write)
        return True

    async def get(self, owner: str, handle: str) -> bytes | None:
        now = self._clock.time()
        rows = await self._database.run(lambda connection: fetch(connection, GET, (owner, handle, now)))
        return bytes(rows[0][0]) if rows else None

    async def expire(self) -> int:
        now = self._clock.time()
        return int((await self._database.run(lambda connection: connection.execute(EXPIRE, (now,)))).rowcount)

    async def forget(self, owner: str | None = None) -> int:
        async def delete(connection: Any) -> int:
            if owner is None:
                return int((await connection.execute(result_rows.FORGET_ALL)).rowcount)
            return int((await connection.execute(FORGET, (owner,))).rowcount)

        return await self._database.run(delete)
