"""Activity in PostgreSQL, of all processes on the store."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from pegboard.activity_entries import ActivityEntry, ActivityGroup, ActivityQuery, ActivityTotals, Grouping, entry_of
from pegboard.stores.postgres.database import PostgresDatabase, execute_each, fetch
from pegboard.stores.sql import activity_rows as rows

MARK = "%s"


class PostgresActivity:
    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def put(self, entries: Sequence[ActivityEntry]) -> None:
        await self._database.run(lambda connection: execute_each(connection, rows.upsert(MARK), rows.stored(entries)))

    async def find(self, query: ActivityQuery, most: int) -> list[ActivityEntry]:
        return [entry_of(row) for row in await self._rows(*rows.select(query, most, MARK))]

    async def get(self, id_: str) -> ActivityEntry | None:
        found = await self._rows(rows.select_one(MARK), [id_])
        return entry_of(found[0]) if found else None

    async def by_day(self, since: float) -> list[tuple[int, ActivityTotals]]:
        return rows.days_from(await self._rows(*rows.by_day(since, MARK)))

    async def by(self, grouping: Grouping, since: float, most: int) -> list[ActivityGroup]:
        return rows.groups_from(await self._rows(*rows.by(grouping, since, most, MARK)))

    async def remove(self, before: float) -> int:
        removed = 0
        while some := await self._deleted(rows.delete_old(MARK), [before]):
            removed += some
        return removed

    async def forget(self, *, key: str | None = None, conversations: Collection[str] | None = None) -> int:
        return await self._deleted(*rows.delete_of(key, conversations, MARK))

    async def _rows(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        return await self._database.run(lambda connection: fetch(connection, query, values))

    async def _deleted(self, statement: str, values: Sequence[Any]) -> int:
        async def delete(connection: Any) -> int:
            return int((await connection.execute(statement, values)).rowcount)

        return await self._database.run(delete)
