"""Which definition of each tool was approved, and which was seen last: in memory, or in a file."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from pegboard.model import NEVER, Fingerprint, Pin, ToolId, Wording
from pegboard.seams import NO_TEXTS
from pegboard.stores.pin_statements import approving, seeing, seen_rows
from pegboard.stores.sqlite_file import OnFile, SqliteFile
from pegboard.stores.sqlite_state import REMEDY, STATE

READ = "SELECT approved, seen FROM pins WHERE server = ? AND name = ?"
READ_ALL = "SELECT server, name, approved, seen FROM pins"
READ_TEXTS = "SELECT approved_text, seen_text FROM pins WHERE server = ? AND name = ?"
SEE = f"{seeing('?')} RETURNING approved, seen"
APPROVE = approving("?")


class MemoryPins:
    def __init__(self) -> None:
        self._pins: dict[ToolId, Pin] = {}
        self._texts: dict[ToolId, dict[Fingerprint, str]] = {}

    async def get(self, tools: Sequence[ToolId] | None = None) -> Mapping[ToolId, Pin]:
        return {tool: self._pins[tool] for tool in (self._pins if tools is None else tools) if tool in self._pins}

    async def put(
        self,
        seen: Mapping[ToolId, Fingerprint],
        *,
        texts: Mapping[ToolId, str] = NO_TEXTS,
        doubted: Collection[ToolId] = (),
    ) -> Mapping[ToolId, Pin]:
        for tool, fingerprint in seen.items():
            known = self._pins.get(tool)
            first = NEVER if tool in doubted else fingerprint
            self._keep(tool, Pin(approved=known.approved if known else first, seen=fingerprint))
            if tool in texts:
                self._texts[tool][fingerprint] = texts[tool]
        return await self.get(list(seen))

    async def approve(self, tools: Mapping[ToolId, Fingerprint]) -> None:
        for tool, fingerprint in tools.items():
            known = self._pins.get(tool)
            self._keep(tool, Pin(approved=fingerprint, seen=known.seen if known else fingerprint))

    async def wordings(self, tools: Sequence[ToolId]) -> Mapping[ToolId, Wording]:
        pins = await self.get(tools)
        return {
            tool: Wording(approved=self._texts[tool].get(pin.approved), seen=self._texts[tool].get(pin.seen))
            for tool, pin in pins.items()
        }

    def _keep(self, tool: ToolId, pin: Pin) -> None:
        """The pin, and of the texts those that it stands for."""
        known = self._texts.get(tool, {})
        self._texts[tool] = {each: known[each] for each in (pin.approved, pin.seen) if each in known}
        self._pins[tool] = pin


class SqlitePins(OnFile):
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

        await self._file.run(write)

    async def wordings(self, tools: Sequence[ToolId]) -> Mapping[ToolId, Wording]:
        def read(connection: sqlite3.Connection) -> dict[ToolId, Wording]:
            rows = ((tool, connection.execute(READ_TEXTS, tool).fetchone()) for tool in tools)
            return {tool: Wording(approved=row[0], seen=row[1]) for tool, row in rows if row}

        return await self._file.run(read)
