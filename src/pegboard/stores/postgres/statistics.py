"""Statistics of tools and lessons from traffic in PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple
from typing import Any

from pegboard.averages import PRIOR, SMOOTHING, after_all, by_tool
from pegboard.clock import SYSTEM_CLOCK
from pegboard.model import Outcome, Smoothing, ToolId, ToolStatistics
from pegboard.protocols import Clock
from pegboard.stores.postgres.database import PostgresDatabase, execute_each, fetch
from pegboard.stores.sql.statements import (
    READ_LESSONS,
    READ_STATISTICS,
    STATISTICS,
    lesson_rows,
    lessons_by_key,
    statistics_by_tool,
    upsert_lessons,
)
from pegboard.traffic import Seen

BEGIN = (
    f"INSERT INTO tool_statistics (server, name, {', '.join(STATISTICS)}) "  # noqa: S608
    "VALUES (%s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
)
LOCK = (
    f"{READ_STATISTICS} WHERE (server, name) IN (SELECT * FROM unnest(%s::text[], %s::text[])) "  # noqa: S608
    'ORDER BY server COLLATE "C", name COLLATE "C" FOR UPDATE'
)
CHANGE = (
    f"UPDATE tool_statistics SET {', '.join(f'{column} = %s' for column in (*STATISTICS, 'used'))} "  # noqa: S608
    "WHERE server = %s AND name = %s"
)
ADD_LESSONS = upsert_lessons("%s")


class PostgresStatistics:
    def __init__(
        self,
        database: PostgresDatabase,
        *,
        prior: ToolStatistics = PRIOR,
        smoothing: Smoothing = SMOOTHING,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._database = database
        self._clock = clock
        self._prior = prior
        self._smoothing = smoothing

    async def observe(self, outcomes: Sequence[Outcome]) -> None:
        groups = by_tool(outcomes)
        if groups:
            await self._database.run(lambda connection: self._update(connection, groups))

    async def read(self) -> Mapping[ToolId, ToolStatistics]:
        return statistics_by_tool(
            await self._database.run(lambda connection: fetch(connection, READ_STATISTICS)), self._prior
        )

    async def _update(self, connection: Any, groups: Mapping[ToolId, Sequence[Outcome]]) -> None:
        """Rows are locked in a fixed order, so that two writers cannot deadlock."""
        before = await self._locked(connection, groups)
        if len(before) < len(groups):  # another process removed some before they were locked
            before = await self._locked(connection, groups)
        new = {tool: after_all(before[tool], group, self._smoothing) for tool, group in groups.items()}
        now = self._clock.time()
        await execute_each(connection, CHANGE, [(*astuple(each), now, *tool) for tool, each in new.items()])

    async def _locked(self, connection: Any, tools: Collection[ToolId]) -> Mapping[ToolId, ToolStatistics]:
        await execute_each(connection, BEGIN, [(*tool, *astuple(self._prior)) for tool in tools])
        rows = await fetch(connection, LOCK, tuple(map(list, zip(*tools, strict=True))))
        return statistics_by_tool(rows, self._prior)


class PostgresLessons:
    def __init__(self, database: PostgresDatabase, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._database = database
        self._clock = clock

    async def add(self, sums: Mapping[str, Seen]) -> None:
        rows = lesson_rows(sums, self._clock.time())
        if rows:
            await self._database.run(lambda connection: execute_each(connection, ADD_LESSONS, rows))

    async def read(self, keys: Sequence[str]) -> Mapping[str, Seen]:
        if not keys:
            return {}
        return lessons_by_key(
            await self._database.run(lambda connection: fetch(connection, f"{READ_LESSONS} = ANY(%s)", (list(keys),)))
        )
