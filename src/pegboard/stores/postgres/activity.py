"""Activity in PostgreSQL, of all processes on the store."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from pegboard.activity_entries import ActivityEntry, ActivityGroup, ActivityQuery, ActivityTotals, Grouping, entry_of
from pegboard.stores.postgres.database import ACTIVITY_SUMS, PostgresDatabase, execute_each, fetch
from pegboard.stores.sql import activity_rows as rows
from pegboard.stores.sql import activity_sums as sums

MARK = "%s"
AMONG = "id = ANY(%s)"
ALONE = "SELECT pg_advisory_xact_lock(7332002, hashtext(current_schema()))"
"""Let no other writer of activity in until the transaction ends: sums are changed by what rows were before."""


class PostgresActivity:
    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def put(self, entries: Sequence[ActivityEntry]) -> None:
        latest = {entry.id: entry for entry in entries}

        async def write(connection: Any) -> None:
            await connection.execute(ALONE)
            before = await fetch(connection, rows.select_among(AMONG), [list(latest)])
            await execute_each(connection, rows.upsert(MARK), rows.stored(latest.values()))
            await _sum(connection, sums.changes(rows.summed_of(before), latest.values()))

        await self._database.run(write)

    async def find(self, query: ActivityQuery, most: int) -> list[ActivityEntry]:
        return [entry_of(row) for row in await self._rows(*rows.select(query, most, MARK))]

    async def get(self, id_: str) -> ActivityEntry | None:
        found = await self._rows(rows.select_one(MARK), [id_])
        return entry_of(found[0]) if found else None

    async def by_day(self, since: int) -> list[tuple[int, ActivityTotals]]:
        return sums.days_from(await self._rows(*sums.by_day(since, MARK)))

    async def by(self, grouping: Grouping, since: int, most: int) -> list[ActivityGroup]:
        return sums.groups_from(await self._rows(*sums.by(grouping, since, most, ACTIVITY_SUMS)))

    async def remove(self, before: float) -> int:
        return await self._removed(*rows.delete_old(before, MARK))

    async def forget(self, *, key: str | None = None, conversations: Collection[str] | None = None) -> int:
        return await self._removed(*rows.delete_of(key, conversations, MARK))

    async def _removed(self, statement: str, values: Sequence[Any]) -> int:
        """Execute a deletion until it removes nothing."""

        async def delete(connection: Any) -> int:
            await connection.execute(ALONE)
            went = rows.summed_of(await fetch(connection, statement, values))
            await _sum(connection, sums.changes(went))
            return len(went)

        removed = 0
        while some := await self._database.run(delete):
            removed += some
        return removed

    async def _rows(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        return await self._database.run(lambda connection: fetch(connection, query, values))


async def _sum(connection: Any, changes: sums.SumChanges) -> None:
    for statement, values in sums.statements(changes, ACTIVITY_SUMS):
        await execute_each(connection, statement, values)
