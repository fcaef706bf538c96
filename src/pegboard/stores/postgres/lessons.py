"""Lessons in PostgreSQL: a row a key, locked while it is added to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pegboard.clock import SYSTEM_CLOCK
from pegboard.seams import Clock
from pegboard.stores.lessons import READ, adding, known, rows_of
from pegboard.stores.postgres.database import PostgresDatabase, execute_each, fetch
from pegboard.traffic import Seen

ADD = adding("%s")


class PostgresLessons:
    def __init__(self, database: PostgresDatabase, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._database = database
        self._clock = clock

    async def add(self, sums: Mapping[str, Seen]) -> None:
        rows = rows_of(sums, self._clock.time())
        if rows:
            await self._database.run(lambda connection: execute_each(connection, ADD, rows))

    async def read(self, keys: Sequence[str]) -> Mapping[str, Seen]:
        if not keys:
            return {}
        return known(await self._database.run(lambda connection: fetch(connection, f"{READ} = ANY(%s)", (list(keys),))))
