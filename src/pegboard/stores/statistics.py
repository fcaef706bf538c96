"""What calls have shown of each tool: in memory, or in a file."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

from pegboard.averages import PRIOR, SMOOTHING, after_all
from pegboard.clock import SYSTEM_CLOCK
from pegboard.model import Outcome, Smoothing, ToolId, ToolStatistics
from pegboard.seams import Clock
from pegboard.stores.sqlite_file import OnFile, SqliteFile
from pegboard.stores.sqlite_state import REMEDY, STATE

COLUMNS = tuple(field.name for field in fields(ToolStatistics))
READ = f"SELECT {', '.join(COLUMNS)} FROM tool_statistics WHERE server = ? AND name = ?"  # noqa: S608
READ_ALL = f"SELECT server, name, {', '.join(COLUMNS)} FROM tool_statistics"  # noqa: S608
WRITE = (
    f"INSERT OR REPLACE INTO tool_statistics (server, name, {', '.join(COLUMNS)}, used) "  # noqa: S608
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


def by_tool(outcomes: Sequence[Outcome]) -> dict[ToolId, list[Outcome]]:
    """The outcomes of each tool in their order; the tools in theirs, so that two writers lock them alike."""
    groups: dict[ToolId, list[Outcome]] = {tool: [] for tool in sorted({each.tool for each in outcomes})}
    for outcome in outcomes:
        groups[outcome.tool].append(outcome)
    return groups


class MemoryStatistics:
    def __init__(self, *, prior: ToolStatistics = PRIOR, smoothing: Smoothing = SMOOTHING) -> None:
        self._prior = prior
        self._smoothing = smoothing
        self._known: dict[ToolId, ToolStatistics] = {}

    async def observe(self, outcomes: Sequence[Outcome]) -> None:
        for tool, group in by_tool(outcomes).items():
            self._known[tool] = after_all(self._known.get(tool, self._prior), group, self._smoothing)

    async def read(self) -> Mapping[ToolId, ToolStatistics]:
        return dict(self._known)


class SqliteStatistics(OnFile):
    """Statistics in one file, over all processes that share it."""

    def __init__(
        self,
        path: Path,
        *,
        prior: ToolStatistics = PRIOR,
        smoothing: Smoothing = SMOOTHING,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._file = SqliteFile(path, STATE, remedy=REMEDY)
        self._prior = prior
        self._smoothing = smoothing
        self._clock = clock

    async def observe(self, outcomes: Sequence[Outcome]) -> None:
        groups, now = by_tool(outcomes), self._clock.time()

        def update(connection: sqlite3.Connection) -> None:
            for tool, group in groups.items():
                known = self._statistics(connection.execute(READ, tool).fetchone())
                connection.execute(WRITE, (*tool, *astuple(after_all(known, group, self._smoothing)), now))

        await self._file.run_alone(update)

    async def read(self) -> Mapping[ToolId, ToolStatistics]:
        def rows(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
            return connection.execute(READ_ALL).fetchall()

        return {ToolId(server, name): self._statistics(values) for server, name, *values in await self._file.run(rows)}

    def _statistics(self, values: Sequence[Any] | None) -> ToolStatistics:
        """What a row says; the prior where there is none, or none of an average."""
        if values is None:
            return self._prior
        known = zip(COLUMNS, values, astuple(self._prior), strict=True)
        return ToolStatistics(**{column: prior if value is None else value for column, value, prior in known})
