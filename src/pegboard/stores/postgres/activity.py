"""Activity in PostgreSQL, of all processes on the store."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Any

from pegboard.activity_entries import ActivityEntry, ActivityGroup, ActivityQuery, ActivityTotals, Grouping
from pegboard.stores.postgres.database import ACTIVITY_SUMS, PostgresDatabase, execute_each, fetch
from pegboard.stores.sql import activity_rows as rows
from pegboard.stores.sql import activity_sums as sums

MARK = "%s"
AMONG = "id = ANY(%s)"
CALLED = "called::jsonb @> jsonb_build_array(%s::text)"
ALONE = "SELECT pg_advisory_xact_lock(7332002, hashtext(current_schema()))"
"""Let no other writer of activity in until the transaction ends: sums are changed by what rows were before."""


class PostgresActivity:
    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def put(self, entries: Sequence[ActivityEntry], *, known: Collection[str] = ()) -> None:
        latest = {entry.id: entry for entry in entries}

        async def write(connection: Any) -> None:
            await connection.execute(ALONE)
            before = rows.summed_of(await fetch(connection, rows.select_among(AMONG), [list(latest)]))
            now = rows.without_removed(latest, before, known)
            await execute_each(connection, rows.upsert(MARK), rows.stored(now))
            changes = sums.changes(before, now)
            await _execute(connection, sums.statements(changes, ACTIVITY_SUMS))

        await self._database.run(write)

    async def find(self, query: ActivityQuery, most: int) -> list[ActivityEntry]:
        return [rows.entry_of(row) for row in await self._rows(*rows.select(query, most, MARK, _called))]

    async def get(self, id_: str) -> ActivityEntry | None:
        found = await self._rows(rows.select_one(MARK), [id_])
        return rows.entry_of(found[0]) if found else None

    async def by_day(self, since: int) -> list[tuple[int, ActivityTotals]]:
        return sums.days_from(await self._rows(*sums.by_day(since, MARK)))

    async def by(self, grouping: Grouping, since: int, most: int) -> list[ActivityGroup]:
        return sums.groups_from(await self._rows(*sums.by(grouping, since, most, ACTIVITY_SUMS)))

    async def remove(self, before: float) -> int:
        removed = await self._removed(*rows.delete_old(before, MARK), spans=False)
        outdated = await self._rows(*sums.outdated(before, MARK))
        for start in range(0, len(outdated), sums.RENEWED):
            found = sums.renewed(outdated[start : start + sums.RENEWED], ACTIVITY_SUMS)
            await self._database.run(partial(_execute_alone, statements=found))
        return removed

    async def forget(self, *, key: str | None = None, conversations: Collection[str] | None = None) -> int:
        return await self._removed(*rows.delete_of(key, conversations, MARK))

    async def _removed(self, statement: str, values: Sequence[Any], *, spans: bool = True) -> int:
        """Execute a deletion until it removes nothing."""

        async def delete(connection: Any) -> int:
            await connection.execute(ALONE)
            went = rows.summed_of(await fetch(connection, statement, values))
            await _execute(connection, sums.statements(sums.changes(went), ACTIVITY_SUMS, spans=spans))
            return len(went)

        removed = 0
        while some := await self._database.run(delete):
            removed += some
        return removed

    async def _rows(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        return await self._database.run(lambda connection: fetch(connection, query, values))


def _called(tool: str) -> rows.Statement:
    return CALLED, [tool]


Statements = Iterable[tuple[str, Sequence[Sequence[Any]]]]


async def _execute(connection: Any, statements: Statements) -> None:
    for statement, values in statements:
        await execute_each(connection, statement, values)


async def _execute_alone(connection: Any, statements: Statements) -> None:
    await connection.execute(ALONE)
    await _execute(connection, statements)
