"""Pins in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pegboard.model import Fingerprint, Pin, ToolId
from pegboard.stores.postgres.database import PostgresDatabase, execute_each, fetch

GET_ALL = "SELECT server, name, approved, seen FROM pins"
GET = (
    "SELECT server, name, approved, seen FROM pins "
    "WHERE (server, name) IN (SELECT * FROM unnest(%s::text[], %s::text[]))"
)
SEE = (
    "INSERT INTO pins (server, name, approved, seen) VALUES (%s, %s, %s, %s) "
    "ON CONFLICT (server, name) DO UPDATE SET seen = excluded.seen"
)
APPROVE = (
    "INSERT INTO pins (server, name, approved, seen) VALUES (%s, %s, %s, %s) "
    "ON CONFLICT (server, name) DO UPDATE SET approved = excluded.approved"
)


class PostgresPins:
    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def get(self, tools: Sequence[ToolId] | None = None) -> Mapping[ToolId, Pin]:
        return await self._database.run(lambda connection: _pins(connection, tools))

    async def put(self, seen: Mapping[ToolId, Fingerprint]) -> Mapping[ToolId, Pin]:
        async def write(connection: Any) -> dict[ToolId, Pin]:
            await execute_each(connection, SEE, _rows(seen))
            return await _pins(connection, list(seen))

        return await self._database.run(write)

    async def approve(self, tools: Mapping[ToolId, Fingerprint]) -> None:
        await self._database.run(lambda connection: execute_each(connection, APPROVE, _rows(tools)))


def _rows(fingerprints: Mapping[ToolId, Fingerprint]) -> list[tuple[str, ...]]:
    """In one order by everybody: nobody waits for somebody who waits for him."""
    return [(*tool, fingerprint, fingerprint) for tool, fingerprint in sorted(fingerprints.items())]


async def _pins(connection: Any, tools: Sequence[ToolId] | None) -> dict[ToolId, Pin]:
    if tools is None:
        rows = await fetch(connection, GET_ALL)
    else:
        rows = await fetch(connection, GET, ([tool.server for tool in tools], [tool.name for tool in tools]))
    return {ToolId(server, name): Pin(approved=approved, seen=seen) for server, name, approved, seen in rows}
