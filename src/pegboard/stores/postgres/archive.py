"""Reads and writes all records in PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from itertools import groupby
from typing import Any

from pegboard.protocols import About, Clock
from pegboard.records import KINDS, Key, Kind, Record
from pegboard.stores.database import batches
from pegboard.stores.postgres.database import MIGRATIONS, PostgresDatabase, execute_each, fetch
from pegboard.stores.retention import is_over, live
from pegboard.stores.sql.statements import NEXT_PIN_VERSION
from pegboard.stores.sql.tables import PAGE, TABLES, Dialect, deletion, record_of, rows_of

POSTGRES = Dialect(mark="%s", bytewise=' COLLATE "C"', unlocked=" FOR UPDATE SKIP LOCKED")
SIZE = (
    "SELECT coalesce(sum(pg_total_relation_size(pg_class.oid)), 0)::bigint FROM pg_class "
    "JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = current_schema() AND relkind = 'r'"
)


class PostgresArchive:
    def __init__(self, database: PostgresDatabase, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def about(self) -> About:
        now = self._clock.time()

        async def look(connection: Any) -> About:
            async def one(query: str, *values: Any) -> Any:
                return (await fetch(connection, query, values))[0][0]

            applied = await fetch(connection, "SELECT name FROM migrations")
            return About(
                backend="postgres",
                place=f"{self._database.place}, schema {self._database.schema}",
                version=str(await one("SHOW server_version")),
                migrations=tuple(step.name for step in MIGRATIONS if (step.name,) in applied),
                counts={kind: await one(TABLES[kind].count(now)) for kind in KINDS},
                bytes=await one(SIZE),
                replicas=await one("SELECT count(*) FROM replicas WHERE ends > %s", now),
            )

        return await self._database.run(look)

    async def read(self, kind: Kind, *, after: Key | None = None) -> AsyncIterator[Record]:
        last = after
        while page := await self._page(kind, last):
            for record in page:
                if not is_over(record, self._clock.time()):
                    yield record
            last = page[-1].identity

    async def write(self, records: Iterable[Record]) -> int:
        now = self._clock.time()

        async def write(connection: Any) -> int:
            taken = 0
            for kind, group in groupby(live(records, now), key=lambda record: record.record):
                for some in batches(group, PAGE):
                    rows = [row for record in some for row in rows_of(record, now)]
                    changed = await execute_each(connection, TABLES[kind].insert(POSTGRES), rows)
                    taken += changed * len(some) // len(rows)
                if kind == "pin":
                    await connection.execute(NEXT_PIN_VERSION)
            return taken

        return await self._database.run(write)

    async def remove(self, kind: Kind, *, keys: Sequence[Key] | None = None, before: float | None = None) -> int:
        query, each = deletion(TABLES[kind], POSTGRES, keys, before)

        async def delete(connection: Any) -> int:
            return len({row for values in each for row in await fetch(connection, query, values)})

        removed = now = await self._database.run(delete)
        while keys is None and now:
            removed += (now := await self._database.run(delete))
        return removed

    async def _page(self, kind: Kind, last: Key | None) -> list[Record]:
        query = TABLES[kind].page(POSTGRES, first=last is None)
        rows = await self._database.run(lambda connection: fetch(connection, query, last or ()))
        return [record_of(kind, row) for row in rows]
