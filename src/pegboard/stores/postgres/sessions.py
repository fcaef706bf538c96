"""Sessions in PostgreSQL."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pegboard.errors import SessionConflict
from pegboard.model import Session
from pegboard.seams import Clock
from pegboard.stores.postgres.database import PostgresDatabase, fetch
from pegboard.stores.sessions import SWEEP, decoded, encoded

LOAD = "SELECT version, state FROM sessions WHERE key = %s AND expires > %s"
BEGIN = (
    "INSERT INTO sessions (key, version, expires, state) VALUES (%(key)s, %(version)s, %(expires)s, %(state)s) "
    "ON CONFLICT (key) DO UPDATE SET version = excluded.version, expires = excluded.expires, state = excluded.state "
    "WHERE sessions.expires <= %(now)s"
)
CHANGE = (
    "UPDATE sessions SET version = %(version)s, expires = %(expires)s, state = %(state)s "
    "WHERE key = %(key)s AND version = %(from)s AND expires > %(now)s"
)
FORGET_EXPIRED = (
    "DELETE FROM sessions WHERE key IN (SELECT key FROM sessions WHERE expires <= %s FOR UPDATE SKIP LOCKED)"
)


class PostgresSessions:
    """Each for ``ttl`` seconds after its last change."""

    def __init__(self, database: PostgresDatabase, clock: Clock, *, ttl: float) -> None:
        self._database = database
        self._clock = clock
        self._ttl = ttl
        self._saves = 0

    async def load(self, key: str) -> Session | None:
        now = self._clock.time()
        rows = await self._database.run(lambda connection: fetch(connection, LOAD, (key, now)))
        return decoded(key, *rows[0]) if rows else None

    async def save(self, session: Session) -> Session:
        saved = replace(session, version=session.version + 1)
        now = self._clock.time()
        self._saves += 1
        values = {
            "key": session.id,
            "from": session.version,
            "version": saved.version,
            "expires": now + self._ttl,
            "state": encoded(saved),
            "now": now,
        }

        async def write(connection: Any) -> bool:
            if self._saves % SWEEP == 1:
                await connection.execute(FORGET_EXPIRED, (now,))
            changed = await connection.execute(CHANGE if session.version else BEGIN, values)
            return bool(changed.rowcount == 1)

        if not await self._database.run(write):
            raise SessionConflict
        return saved

    async def forget(self, key: str) -> None:
        await self._database.run(lambda connection: connection.execute("DELETE FROM sessions WHERE key = %s", (key,)))
