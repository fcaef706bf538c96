"""Which definition of each tool was approved, and which was seen last: in memory, or in a file."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

from pegboard.model import Fingerprint, Pin, ToolId
from pegboard.stores.sqlite_file import SqliteFile
from pegboard.stores.sqlite_state import REMEDY, STATE

READ = "SELECT approved, seen FROM pins WHERE server = ? AND name = ?"
READ_ALL = "SELECT server, name, approved, seen FROM pins"
SEE = (
    "INSERT INTO pins (server, name, approved, seen) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (server, name) DO UPDATE SET seen = excluded.seen RETURNING approved, seen"
)
APPROVE = (
    "INSERT INTO pins (server, name, approved, seen) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (server, name) DO UPDATE SET approved = excluded.approved"
)


class MemoryPins:
    def __init__(self) -> None:
        self._pins: dict[ToolId, Pin] = {}

    async def get(self, tools: Sequence[ToolId] | None = None) -> Mapping[ToolId, Pin]:
        return {tool: self._pins[tool] for tool in (self._pins if tools is None else tools) if tool in self._pins}

    async def put(self, seen: Mapping[ToolId, Fingerprint]) -> Mapping[ToolId, Pin]:
        for tool, fingerprint in seen.items():
            known = self._pins.get(tool)
            self._pins[tool] = Pin(approved=known.approved if known else fingerprint, seen=fingerprint)
        return await self.get(list(seen))

    async def approve(self, tools: Mapping[ToolId, Fingerprint]) -> None:
        for tool, fingerprint in tools.items():
            known = self._pins.get(tool)
            self._pins[tool] = Pin(approved=fingerprint, seen=known.seen if known else fingerprint)


class SqlitePins:
    """Pins in one file, the same for all processes that share it."""

    def __init__(self, path: Path) -> None:
        self._file = SqliteFile(path, STATE, remedy=REMEDY)

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

    async def put(self, seen: Mapping[ToolId, Fingerprint]) -> Mapping[ToolId, Pin]:
        def write(connection: sqlite3.Connection) -> dict[ToolId, Pin]:
            pins = {}
            for tool, fingerprint in seen.items():
                [(approved, now)] = connection.execute(SEE, (*tool, fingerprint, fingerprint)).fetchall()
                pins[tool] = Pin(approved=approved, seen=now)
            return pins

        return await self._file.run_alone(write)

    async def approve(self, tools: Mapping[ToolId, Fingerprint]) -> None:
        rows = [(*tool, fingerprint, fingerprint) for tool, fingerprint in tools.items()]

        def write(connection: sqlite3.Connection) -> None:
            connection.executemany(APPROVE, rows)

        await self._file.run(write)

    def close(self) -> None:
        self._file.close()
