"""What calls have shown of each tool: in memory, or in a file."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from pegboard.model import Outcome, ToolId, ToolStatistics
from pegboard.stores.sqlite_file import SqliteFile

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS tool_statistics "
    "(server TEXT, name TEXT, calls INTEGER NOT NULL, successes INTEGER NOT NULL, PRIMARY KEY (server, name)) "
    "WITHOUT ROWID"
)
ADD = (
    "INSERT INTO tool_statistics VALUES (?, ?, ?, ?) ON CONFLICT (server, name) "
    "DO UPDATE SET calls = calls + excluded.calls, successes = successes + excluded.successes"
)
REMEDY = "Set state_dir to a folder that can be written, or move the file away: its counts start anew."


class MemoryStatistics:
    def __init__(self) -> None:
        self._calls: Counter[ToolId] = Counter()
        self._successes: Counter[ToolId] = Counter()

    async def observe(self, outcomes: Sequence[Outcome]) -> None:
        self._calls.update(each.tool for each in outcomes)
        self._successes.update(each.tool for each in outcomes if each.success)

    async def read(self) -> Mapping[ToolId, ToolStatistics]:
        return {
            tool: ToolStatistics(calls=calls, successes=self._successes[tool]) for tool, calls in self._calls.items()
        }


class SqliteStatistics:
    """Counts in one file, added up over all processes that share it."""

    def __init__(self, path: Path) -> None:
        self._file = SqliteFile(path, SCHEMA, remedy=REMEDY)

    async def observe(self, outcomes: Sequence[Outcome]) -> None:
        calls = Counter(each.tool for each in outcomes)
        successes = Counter(each.tool for each in outcomes if each.success)
        rows = [(*tool, count, successes[tool]) for tool, count in calls.items()]

        def add(connection: sqlite3.Connection) -> None:
            connection.executemany(ADD, rows)

        await self._file.run(add)

    async def read(self) -> Mapping[ToolId, ToolStatistics]:
        def rows(connection: sqlite3.Connection) -> list[tuple[str, str, int, int]]:
            return connection.execute("SELECT server, name, calls, successes FROM tool_statistics").fetchall()

        return {
            ToolId(server, name): ToolStatistics(calls=calls, successes=successes)
            for server, name, calls, successes in await self._file.run(rows)
        }

    def close(self) -> None:
        self._file.close()
