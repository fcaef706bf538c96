"""The processes that serve together, in PostgreSQL: a row each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pegboard.model import Replica
from pegboard.seams import Clock
from pegboard.stores.postgres.database import PostgresDatabase, fetch
from pegboard.stores.replicas import ALIVE

BEAT = (
    "INSERT INTO replicas (id, url, ends) VALUES (%s, %s, %s) "
    "ON CONFLICT (id) DO UPDATE SET url = excluded.url, ends = excluded.ends"
)
FORGET_ENDED = "DELETE FROM replicas WHERE id IN (SELECT id FROM replicas WHERE ends <= %s FOR UPDATE SKIP LOCKED)"
ALIVE_NOW = 'SELECT id, url FROM replicas WHERE ends > %s ORDER BY id COLLATE "C"'
LEAVE = "DELETE FROM replicas WHERE id = %s"


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
