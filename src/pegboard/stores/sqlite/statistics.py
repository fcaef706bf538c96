"""Statistics of tools and lessons from traffic, in the state file."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

from pegboard.averages import PRIOR, SMOOTHING, after_all, by_tool
from pegboard.clock import SYSTEM_CLOCK
from pegboard.model import Outcome, Smoothing, ToolId, ToolStatistics
from pegboard.protocols import Clock
from pegboard.stores.database import batches
from pegboard.stores.sql.statements import (
    READ_LESSONS,
    READ_STATISTICS,
    STATISTICS,
    lesson_rows,
    lessons_by_key,
    statistics_by_tool,
    statistics_of,
    upsert_lessons,
)
from pegboard.stores.sqlite.database import REMEDY, STATE_MIGRATIONS, FileStore, SqliteFile
from pegboard.traffic import Seen

READ_ONE = f"SELECT {', '.join(STATISTICS)} FROM tool_statistics WHERE server = ? AND name = ?"  # noqa: S608
WRITE = (
    f"INSERT OR REPLACE INTO tool_statistics (server, name, {', '.join(STATISTICS)}, used) "  # noqa: S608
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class SqliteStatistics(FileStore):
    """Statistics in one file, shared by all processes that use it."""

    def __init__(
        self,
        path: Path,
        *,
        prior: ToolStatistics = PRIOR,
        smoothing: Smoothing = SMOOTHING,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._file = SqliteFile(path, STATE_MIGRATIONS, remedy=REMEDY)
        self._prior = prior
        self._smoothing = smoothing
        self._clock = clock

    async def observe(self, outcomes: Sequence[Outcome]) -> None:
        groups, now = by_tool(outcomes), self._clock.time()

        def update(connection: sqlite3.Connection) -> None:
            for tool, group in groups.items():
                row = connection.execute(READ_ONE, tool).fetchone()
                before = self._prior if row is None else statistics_of(row, self._prior)
                connection.execute(WRITE, (*tool, *astuple(after_all(before, group, self._smoothing)), now))

        await self._file.run_alone(update)

    async def read(self) -> Mapping[ToolId, ToolStatistics]:
        def rows(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
            return connection.execute(READ_STATISTICS).fetchall()

        return statistics_by_tool(await self._file.run(rows), self._prior)


class SqliteLessons(FileStore):
    """Lessons in one file, shared by all processes that use it."""

    def __init__(self, path: Path, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._file = SqliteFile(path, STATE_MIGRATIONS, remedy=REMEDY)
        self._clock = clock

    async def add(self, sums: Mapping[str, Seen]) -> None:
        query, rows = upsert_lessons("?"), lesson_rows(sums, self._clock.time())

        def write(connection: sqlite3.Connection) -> None:
            connection.executemany(query, rows)

        if rows:
            await self._file.run_alone(write)

    async def read(self, keys: Sequence[str]) -> Mapping[str, Seen]:
        def read(connection: sqlite3.Connection) -> dict[str, Seen]:
            found: dict[str, Seen] = {}
            for some in batches(dict.fromkeys(keys)):
                marks = ", ".join("?" * len(some))
                found |= lessons_by_key(connection.execute(f"{READ_LESSONS} IN ({marks})", some))
            return found

        return await self._file.run(read) if keys else {}
