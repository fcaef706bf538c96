"""Activity in a file of its own, so that it never waits for other state."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from pegboard.activity_entries import ActivityEntry, ActivityGroup, ActivityQuery, ActivityTotals, Grouping, entry_of
from pegboard.stores.database import Migration
from pegboard.stores.sql import activity_rows as rows
from pegboard.stores.sqlite.database import FileStore, SqliteFile

ACTIVITY_MIGRATIONS = (Migration("activity", rows.table("INTEGER", "REAL")),)
REMEDY = "Set state_dir to a writable folder, or move the file away to begin without activity."
MARK = "?"


class SqliteActivity(FileStore):
    def __init__(self, path: Path) -> None:
        self._file = SqliteFile(path, ACTIVITY_MIGRATIONS, remedy=REMEDY, private=True)

    async def put(self, entries: Sequence[ActivityEntry]) -> None:
        def write(connection: sqlite3.Connection) -> None:
            connection.executemany(rows.upsert(MARK), rows.stored(entries))

        await self._file.run_alone(write)

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
        return await self._file.run(lambda connection: connection.execute(query, values).fetchall())

    async def _deleted(self, statement: str, values: Sequence[Any]) -> int:
        return await self._file.run_alone(lambda connection: connection.execute(statement, values).rowcount)
