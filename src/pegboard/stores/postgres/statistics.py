"""Statistics in PostgreSQL: a row a tool, locked while it is brought up to date."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from typing import Any

from pegboard.averages import PRIOR, SMOOTHING, after_all
from pegboard.clock import SYSTEM_CLOCK
from pegboard.model import Outcome, Smoothing, ToolId, ToolStatistics
from pegboard.seams import Clock
from pegboard.stores.postgres.database import PostgresDatabase, execute_each, fetch
from pegboard.stores.statistics import COLUMNS, by_tool

ROWS = f"SELECT server, name, {', '.join(COLUMNS)} FROM tool_statistics"  # noqa: S608
BEGIN = (
    f"INSERT INTO tool_statistics (server, name, {', '.join(COLUMNS)}) "  # noqa: S608
    "VALUES (%s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
)
LOCK = (
    f"{ROWS} WHERE (server, name) IN (SELECT * FROM unnest(%s::text[], %s::text[])) "  # noqa: S608
    'ORDER BY server COLLATE "C", name COLLATE "C" FOR UPDATE'
)
CHANGE = (
    f"UPDATE tool_statistics SET {', '.join(f'{column} = %s' for column in (*COLUMNS, 'used'))} "  # noqa: S608
    "WHERE server = %s AND name = %s"
)


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
        return _known(await self._database.run(lambda connection: fetch(connection, ROWS)))

    async def _update(self, connection: Any, groups: Mapping[ToolId, Sequence[Outcome]]) -> None:
        """Rows are locked in one order by everybody: nobody waits for somebody who waits for him."""
        await execute_each(connection, BEGIN, [(*tool, *astuple(self._prior)) for tool in groups])
        known = _known(await fetch(connection, LOCK, tuple(map(list, zip(*groups, strict=True)))))
        new = {tool: after_all(known[tool], group, self._smoothing) for tool, group in groups.items()}
        now = self._clock.time()
        await execute_each(connection, CHANGE, [(*astuple(each), now, *tool) for tool, each in new.items()])


def _known(rows: Sequence[tuple[Any, ...]]) -> dict[ToolId, ToolStatistics]:
    return {
        ToolId(server, name): ToolStatistics(**dict(zip(COLUMNS, values, strict=True)))
        for server, name, *values in rows
    }
