"""Pins in the state file."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from pegboard.model import Fingerprint, Pin, ToolId, Wording
from pegboard.protocols import NO_TEXTS
from pegboard.stores.sql.statements import (
    NEXT_PIN_VERSION,
    READ_PIN_VERSION,
    seen_rows,
    upsert_approved,
    upsert_seen,
)
from pegboard.stores.sqlite.database import REMEDY, STATE_MIGRATIONS, FileStore, SqliteFile

READ = "SELECT approved, seen FROM pins WHERE server = ? AND name = ?"
READ_ALL = "SELECT server, name, approved, seen FROM pins"
READ_TEXTS = "SELECT approved_text, seen_text FROM pins WHERE server = ? AND name = ?"
SEE = f"{upsert_seen('?')} RETURNING approved, seen"
APPROVE = upsert_approved("?")


class SqlitePins(FileStore):
    """Pins in one file, shared by all processes that use it."""

    def __init__(self, path: Path) -> None:
        self._file = SqliteFile(path, STATE_MIGRATIONS, remedy=REMEDY)

    async def get(self, tools: Sequence[ToolId] | None = None) -> Mapping[ToolId, Pin]:
        def read_all(connection: sqlite3.Connection) -> dict[ToolId, Pin]:
            rows = connection.execute(READ_ALL).fetchall()
            return {ToolId(server, name): Pin(approved=approved, seen=seen) for server, name, approved, seen in rows}

        def read(connection: sqlite3.Connection) -> dict[ToolId, Pin]:
            if tools is None:
                return read_all(connection)
            rows = ((tool, connection.execute(READ, tool).fetchone()) for tool in tools)
            return {tool: Pin(approved=row[0], seen=row[1]) for tool, row in rows if row}

        return await self._file.run(read)

    async def put(
        self,
        seen: Mapping[ToolId, Fingerprint],
        *,
        texts: Mapping[ToolId, str] = NO_TEXTS,
        doubted: Collection[ToolId] = (),
    ) -> Mapping[ToolId, Pin]:
        rows = seen_rows(seen, texts, doubted)

        def write(connection: sqlite3.Connection) -> dict[ToolId, Pin]:
            pins = {}
            for server, name, *values in rows:
                [(approved, now)] = connection.execute(SEE, (server, name, *values)).fetchall()
                pins[ToolId(server, name)] = Pin(approved=approved, seen=now)
            return pins

        return await self._file.run_alone(write)

    async def approve(self, tools: Mapping[ToolId, Fingerprint]) -> None:
        rows = [(*tool, fingerprint, fingerprint) for tool, fingerprint in tools.items()]

        def write(connection: sqlite3.Connection) -> None:
            connection.executemany(APPROVE, rows)
            connection.execute(NEXT_PIN_VERSION)

        await self._file.run(write)

    async def wordings(self, tools: Sequence[ToolId]) -> Mapping[ToolId, Wording]:
        def read(connection: sqlite3.Connection) -> dict[ToolId, Wording]:
            rows = ((tool, connection.execute(READ_TEXTS, tool).fetchone()) for tool in tools)
            return {tool: Wording(approved=row[0], seen=row[1]) for tool, row in rows if row}

        return await self._file.run(read)

    async def version(self) -> int:
        return await self._file.run(lambda connection: int(connection.execute(READ_PIN_VERSION).fetchone()[0]))
