"""Pins in PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pegboard.model import Fingerprint, Pin, ToolId, Wording
from pegboard.protocols import NO_TEXTS
from pegboard.stores.postgres.database import PostgresDatabase, execute_each, fetch
from pegboard.stores.sql.statements import (
    NEXT_PIN_VERSION,
    READ_PIN_VERSION,
    seen_rows,
    upsert_approved,
    upsert_seen,
)

GET_ALL = "SELECT server, name, approved, seen FROM pins"
OF_THESE = " WHERE (server, name) IN (SELECT * FROM unnest(%s::text[], %s::text[]))"
GET_TEXTS = f"SELECT server, name, approved_text, seen_text FROM pins{OF_THESE}"  # noqa: S608
SEE = upsert_seen("%s")
APPROVE = upsert_approved("%s")


class PostgresPins:
    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def get(self, tools: Sequence[ToolId] | None = None) -> Mapping[ToolId, Pin]:
        return await self._database.run(lambda connection: _pins(connection, tools))

    async def put(
        self,
        seen: Mapping[ToolId, Fingerprint],
        *,
        texts: Mapping[ToolId, str] = NO_TEXTS,
        doubted: Collection[ToolId] = (),
    ) -> Mapping[ToolId, Pin]:
        async def write(connection: Any) -> dict[ToolId, Pin]:
            await execute_each(connection, SEE, seen_rows(seen, texts, doubted))
            return await _pins(connection, list(seen))

        return await self._database.run(write)

    async def approve(self, tools: Mapping[ToolId, Fingerprint]) -> None:
        """In the same order as `seen_rows`."""
        rows = [(*tool, fingerprint, fingerprint) for tool, fingerprint in sorted(tools.items())]

        async def write(connection: Any) -> None:
            await execute_each(connection, APPROVE, rows)
            await connection.execute(NEXT_PIN_VERSION)

        await self._database.run(write)

    async def wordings(self, tools: Sequence[ToolId]) -> Mapping[ToolId, Wording]:
        rows = await self._database.run(lambda connection: fetch(connection, GET_TEXTS, _columns(tools)))
        return {ToolId(server, name): Wording(approved=approved, seen=seen) for server, name, approved, seen in rows}

    async def version(self) -> int:
        [(version,)] = await self._database.run(lambda connection: fetch(connection, READ_PIN_VERSION))
        return int(version)


async def _pins(connection: Any, tools: Sequence[ToolId] | None) -> dict[ToolId, Pin]:
    query, values = (GET_ALL, ()) if tools is None else (GET_ALL + OF_THESE, _columns(tools))
    rows = await fetch(connection, query, values)
    return {ToolId(server, name): Pin(approved=approved, seen=seen) for server, name, approved, seen in rows}


def _columns(tools: Sequence[ToolId]) -> tuple[list[str], ...]:
    return [tool.server for tool in tools], [tool.name for tool in tools]
