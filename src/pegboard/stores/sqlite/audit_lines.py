"""The audit log in a file of its own, so that it never waits for other state."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from pegboard.audit_entries import AuditEntry, Link
from pegboard.stores.audit_chain import appended, ends_of, hash_in, shortened
from pegboard.stores.database import BATCH, Migration
from pegboard.stores.sqlite.database import FileStore, SqliteFile

AUDIT_MIGRATIONS = (
    Migration(
        "audit log",
        (
            "CREATE TABLE audit_lines (number INTEGER PRIMARY KEY, at REAL NOT NULL, hash TEXT NOT NULL, "
            "line BLOB NOT NULL)",
            "CREATE TABLE audit_ends (id INTEGER PRIMARY KEY CHECK (id = 1), text TEXT NOT NULL)",
        ),
    ),
)
REMEDY = "Set state_dir to a writable folder, or move the file away to begin another log."
ENDS = "SELECT text FROM audit_ends"
SET_ENDS = "INSERT OR REPLACE INTO audit_ends VALUES (1, ?)"
PAGE = f"SELECT number, line FROM audit_lines WHERE number > ? ORDER BY number LIMIT {BATCH}"  # noqa: S608
OLDEST = (
    "SELECT number, hash FROM audit_lines WHERE number < coalesce("
    "(SELECT number FROM audit_lines WHERE at > ? ORDER BY number LIMIT 1), 9223372036854775807) "
    "ORDER BY number DESC LIMIT 1"
)
"""The last of the lines before the first one that is younger; no more lines are read than there are old ones."""


class SqliteAudit(FileStore):
    def __init__(self, path: Path, *, key: bytes = b"") -> None:
        self._file = SqliteFile(path, AUDIT_MIGRATIONS, remedy=REMEDY, private=True)
        self._key = key

    async def append(self, entries: Sequence[AuditEntry]) -> None:
        def write(connection: sqlite3.Connection) -> None:
            lines, ends = appended(entries, _ends(connection), self._key)
            first = ends_of(ends).last.number - len(lines) + 1
            rows = [
                (first + place, entry.at, hash_in(line), line)
                for place, (entry, line) in enumerate(zip(entries, lines, strict=True))
            ]
            connection.executemany("INSERT INTO audit_lines VALUES (?, ?, ?, ?)", rows)
            connection.execute(SET_ENDS, (ends,))

        await self._file.run_alone(write)

    async def read(self) -> AsyncIterator[bytes]:
        last = 0
        while page := await self._file.run(lambda connection: connection.execute(PAGE, (last,)).fetchall()):  # noqa: B023
            for _, line in page:
                yield bytes(line)
            last = page[-1][0]

    async def ends(self) -> str:
        return await self._file.run(_ends)

    async def remove(self, before: float) -> int:
        def delete(connection: sqlite3.Connection) -> int:
            oldest = connection.execute(OLDEST, (before,)).fetchone()
            if oldest is None:
                return 0
            removed = Link(number=oldest[0], hash=oldest[1])
            connection.execute(SET_ENDS, (shortened(_ends(connection), removed, self._key),))
            return connection.execute("DELETE FROM audit_lines WHERE number <= ?", (removed.number,)).rowcount

        return await self._file.run_alone(delete)


def _ends(connection: sqlite3.Connection) -> str:
    row = connection.execute(ENDS).fetchone()
    return str(row[0]) if row else ""
