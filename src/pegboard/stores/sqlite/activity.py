"""Activity in a file of its own, so that it never waits for other state."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pegboard.activity_entries import ActivityEntry, ActivityGroup, ActivityQuery, ActivityTotals, Grouping
from pegboard.stores.database import Migration
from pegboard.stores.sql import activity_rows as rows
from pegboard.stores.sql import activity_sums as sums
from pegboard.stores.sqlite.activity_writer import ActivityWriter
from pegboard.stores.sqlite.database import FileStore, SqliteFile

MARK = "?"
DIALECT = sums.SumDialect(mark=MARK, called="json_each(called) AS each")
AMONG = "id IN (SELECT value FROM json_each(?))"
ACTIVITY_MIGRATIONS = (
    Migration("activity", rows.table("INTEGER", "REAL")),
    Migration("sums of activity", sums.table("INTEGER", "REAL", DIALECT, " WITHOUT ROWID")),
    Migration("usage in activity", rows.usage_columns("INTEGER")),
    Migration(
        "filters of activity",
        rows.filter_indexes("CREATE INDEX activity_with_calls ON activity (at, called) WHERE called <> '[]'"),
    ),
)
SPANS = "SELECT first, last FROM activity_sums WHERE axis = 'tool' AND name = ? ORDER BY day DESC"
"""Of each day on which a tool was called, the times of the first and of the last decision with a call of it."""
CALLED = (
    "called <> '[]' AND instr(called, ?) AND EXISTS (SELECT 1 FROM json_each(called) AS each "
    "WHERE each.value = ?) AND at >= ? AND at <= ?"
)
"""Whether a tool was called within a span, from an index that holds the calls."""
ALWAYS = (float("-inf"), float("inf"))
BUSY = 20
"""Entries of a batch: with four batches a second, 80 decisions a second."""
REMEDY = "Set state_dir to a writable folder, or move the file away to begin without activity."


class SqliteActivity(FileStore):
    """With ``apart``, another process writes from the first batch of `BUSY` entries on."""

    def __init__(self, path: Path, *, apart: bool = True) -> None:
        self._file = SqliteFile(path, ACTIVITY_MIGRATIONS, remedy=REMEDY, private=True)
        self._writer = ActivityWriter(path) if apart else None

    async def put(self, entries: Sequence[ActivityEntry], *, known: Collection[str] = ()) -> None:
        latest, writer = {entry.id: entry for entry in entries}, self._writer
        busy = writer is not None and (writer.runs or len(latest) >= BUSY)
        if writer is not None and busy and await asyncio.to_thread(writer.put, list(latest.values()), known):
            self._file.amiss = ""
            return

        def write(connection: sqlite3.Connection) -> None:
            found = connection.execute(rows.select_among(AMONG), [json.dumps(list(latest))]).fetchall()
            before = rows.summed_of(found)
            now = rows.without_removed(latest, before, known)
            connection.executemany(rows.upsert(MARK), rows.stored(now))
            changes = sums.changes(before, now)
            _execute(connection, sums.statements(changes, DIALECT))

        await self._file.run_alone(write)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        super().close()

    async def find(self, query: ActivityQuery, most: int) -> list[ActivityEntry]:
        if query.tool is not None:
            return await self._file.run(partial(_with_calls, query=query, tool=query.tool, most=most))
        return [rows.entry_of(row) for row in await self._rows(*rows.select(query, most, MARK, _called, aside="+"))]

    async def get(self, id_: str) -> ActivityEntry | None:
        found = await self._rows(rows.select_one(MARK), [id_])
        return rows.entry_of(found[0]) if found else None

    async def by_day(self, since: int) -> list[tuple[int, ActivityTotals]]:
        return sums.days_from(await self._rows(*sums.by_day(since, MARK)))

    async def by(self, grouping: Grouping, since: int, most: int) -> list[ActivityGroup]:
        return sums.groups_from(await self._rows(*sums.by(grouping, since, most, DIALECT)))

    async def remove(self, before: float) -> int:
        removed = await self._removed(*rows.delete_old(before, MARK), spans=False)
        outdated = await self._rows(*sums.outdated(before, MARK))
        for start in range(0, len(outdated), sums.RENEWED):
            found = sums.renewed(outdated[start : start + sums.RENEWED], DIALECT)
            await self._file.run_alone(partial(_execute, statements=found))
        return removed

    async def forget(self, *, key: str | None = None, conversations: Collection[str] | None = None) -> int:
        return await self._removed(*rows.delete_of(key, conversations, MARK))

    async def _removed(self, statement: str, values: Sequence[Any], *, spans: bool = True) -> int:
        """Execute a deletion until it removes nothing."""

        def delete(connection: sqlite3.Connection) -> int:
            went = rows.summed_of(connection.execute(statement, values).fetchall())
            _execute(connection, sums.statements(sums.changes(went), DIALECT, spans=spans))
            return len(went)

        removed = 0
        while some := await self._file.run_alone(delete):
            removed += some
        return removed

    async def _rows(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        return await self._file.run(lambda connection: connection.execute(query, values).fetchall())


def _with_calls(connection: sqlite3.Connection, query: ActivityQuery, tool: str, most: int) -> list[ActivityEntry]:
    """Only what is between the first and the last call of a day is read, the latest day first: little of a tool that
    is rarely called."""
    found = list[ActivityEntry]()
    connection.execute("BEGIN")
    for span in connection.execute(SPANS, [tool]).fetchall():
        statement = rows.select(query, most - len(found), MARK, partial(_called, span=span), aside="+")
        found += map(rows.entry_of, connection.execute(*statement))
        if len(found) >= most:
            break
    return found


def _called(tool: str, span: Sequence[float] = ALWAYS) -> rows.Statement:
    return CALLED, [rows.as_stored(tool), tool, *span]


def _execute(connection: sqlite3.Connection, statements: Iterable[tuple[str, Sequence[Sequence[Any]]]]) -> None:
    for statement, values in statements:
        connection.executemany(statement, values)
