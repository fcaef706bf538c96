"""Sessions, signing keys and replicas in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pegboard.errors import SessionConflict
from pegboard.model import Replica, Session, SigningKey
from pegboard.protocols import Clock
from pegboard.stores.postgres.database import PostgresDatabase, execute_each, fetch
from pegboard.stores.retention import ALIVE
from pegboard.stores.sessions import decode_session, encode_session, in_order, signing_key
from pegboard.stores.sql.tables import SWEEP

LOAD = "SELECT version, state FROM sessions WHERE key = %s AND expires > %s"
BEGIN_SESSION = (
    "INSERT INTO sessions (key, version, expires, state) VALUES (%(key)s, %(version)s, %(expires)s, %(state)s) "
    "ON CONFLICT (key) DO UPDATE SET version = excluded.version, expires = excluded.expires, state = excluded.state "
    "WHERE sessions.expires <= %(now)s"
)
CHANGE_SESSION = (
    "UPDATE sessions SET version = %(version)s, expires = %(expires)s, state = %(state)s "
    "WHERE key = %(key)s AND version = %(from)s AND expires > %(now)s"
)
FORGET_EXPIRED = (
    "DELETE FROM sessions WHERE key IN (SELECT key FROM sessions WHERE expires <= %s FOR UPDATE SKIP LOCKED)"
)
ADD_KEYS = "INSERT INTO signing_keys (id, made, secret) VALUES (%s, %s, %s) ON CONFLICT (id) DO NOTHING"
FORGET_KEYS = (
    "DELETE FROM signing_keys WHERE id IN (SELECT id FROM signing_keys WHERE made < %s FOR UPDATE SKIP LOCKED)"
)
KEPT_KEYS = "SELECT id, made, secret FROM signing_keys WHERE made >= %s"
BEAT = (
    "INSERT INTO replicas (id, url, ends) VALUES (%s, %s, %s) "
    "ON CONFLICT (id) DO UPDATE SET url = excluded.url, ends = excluded.ends"
)
FORGET_ENDED = "DELETE FROM replicas WHERE id IN (SELECT id FROM replicas WHERE ends <= %s FOR UPDATE SKIP LOCKED)"
ALIVE_NOW = 'SELECT id, url FROM replicas WHERE ends > %s ORDER BY id COLLATE "C"'
LEAVE = "DELETE FROM replicas WHERE id = %s"


class PostgresSessions:
    """Sessions, each for ``ttl`` seconds after its last change."""

    def __init__(self, database: PostgresDatabase, clock: Clock, *, ttl: float) -> None:
        self._database = database
        self._clock = clock
        self._ttl = ttl
        self._saves = 0

    async def load(self, key: str) -> Session | None:
        now = self._clock.time()
        rows = await self._database.run(lambda connection: fetch(connection, LOAD, (key, now)))
        return decode_session(key, *rows[0]) if rows else None

    async def save(self, session: Session) -> Session:
        saved = replace(session, version=session.version + 1)
        now = self._clock.time()
        self._saves += 1
        values = {
            "key": session.id,
            "from": session.version,
            "version": saved.version,
            "expires": now + self._ttl,
            "state": encode_session(saved),
            "now": now,
        }

        async def write(connection: Any) -> bool:
            if self._saves % SWEEP == 1:
                await connection.execute(FORGET_EXPIRED, (now,))
            changed = await connection.execute(CHANGE_SESSION if session.version else BEGIN_SESSION, values)
            return bool(changed.rowcount == 1)

        if not await self._database.run(write):
            raise SessionConflict
        return saved

    async def forget(self, key: str) -> None:
        await self._database.run(lambda connection: connection.execute("DELETE FROM sessions WHERE key = %s", (key,)))


class PostgresSigningKeys:
    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def share(self, keys: Sequence[SigningKey], *, forget: float) -> Sequence[SigningKey]:
        rows = [(key.id, key.made, key.secret.hex()) for key in keys]

        async def write(connection: Any) -> list[tuple[Any, ...]]:
            if rows:
                await execute_each(connection, ADD_KEYS, rows)
            await connection.execute(FORGET_KEYS, (forget,))
            return await fetch(connection, KEPT_KEYS, (forget,))

        return in_order(signing_key(*row) for row in await self._database.run(write))


class PostgresReplicas:
    def __init__(self, database: PostgresDatabase, clock: Clock, *, ttl: float = ALIVE) -> None:
        self._database = database
        self._clock = clock
        self._ttl = ttl

    async def beat(self, replica: Replica) -> Sequence[Replica]:
        now = self._clock.time()

        async def beat(connection: Any) -> list[tuple[Any, ...]]:
            await connection.execute(BEAT, (replica.id, replica.url, now + self._ttl))
            await connection.execute(FORGET_ENDED, (now,))
            return await fetch(connection, ALIVE_NOW, (now,))

        return [Replica(id=key, url=url) for key, url in await self._database.run(beat)]

    async def leave(self, replica: Replica) -> None:
        await self._database.run(lambda connection: connection.execute(LEAVE, (replica.id,)))
