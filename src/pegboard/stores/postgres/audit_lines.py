"""The audit log in PostgreSQL: the row of its ends is locked while lines are appended."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from pegboard.audit_entries import AuditEntry, Link
from pegboard.errors import PegboardError
from pegboard.stores.audit_chain import MOST_UNSURE, appended, ends_of, hash_in, shortened
from pegboard.stores.database import BATCH
from pegboard.stores.postgres.database import PostgresDatabase, execute_each, fetch

BEGIN = "INSERT INTO audit_ends (id, text) VALUES (1, '') ON CONFLICT DO NOTHING"
LOCK = "SELECT text FROM audit_ends WHERE id = 1 FOR UPDATE"
SET_ENDS = "UPDATE audit_ends SET text = %s WHERE id = 1"
INSERT = "INSERT INTO audit_lines (number, at, hash, line) VALUES (%s, %s, %s, %s)"
HAS = "SELECT 1 FROM audit_lines WHERE number = %s AND hash = %s"
PAGE = f"SELECT number, line FROM audit_lines WHERE number > %s ORDER BY number LIMIT {BATCH}"  # noqa: S608
OLDEST = (
    "SELECT number, hash FROM audit_lines WHERE number < coalesce("
    "(SELECT number FROM audit_lines WHERE at > %s ORDER BY number LIMIT 1), 9223372036854775807) "
    "ORDER BY number DESC LIMIT 1"
)
"""The last of the lines before the first one that is younger, whatever the clocks of those that wrote later."""


class PostgresAudit:
    def __init__(self, database: PostgresDatabase, *, key: bytes = b"") -> None:
        self._database = database
        self._key = key
        self._unsure: dict[tuple[AuditEntry, ...], Link] = {}
        """The last lines of transactions whose end got no answer, by their entries: if these come again, they may be
        there."""

    async def append(self, entries: Sequence[AuditEntry]) -> None:
        """Once, also if an earlier append of the same entries got no answer."""
        given, written = tuple(entries), list[Link]()

        async def write(connection: Any) -> None:
            before = await _locked(connection)
            known = self._unsure.get(given) if self._unsure else None
            if known is not None and await fetch(connection, HAS, (known.number, known.hash)):
                return
            lines, ends = appended(entries, before, self._key)
            first = ends_of(ends).last.number - len(lines) + 1
            rows = [
                (first + place, entry.at, hash_in(line), line.decode())
                for place, (entry, line) in enumerate(zip(entries, lines, strict=True))
            ]
            await execute_each(connection, INSERT, rows)
            await connection.execute(SET_ENDS, (ends,))
            written.append(ends_of(ends).last)

        try:
            await self._database.run(write)
        except PegboardError:
            if written:
                self._unsure[given] = written[0]
                while len(self._unsure) > MOST_UNSURE:
                    del self._unsure[next(iter(self._unsure))]
            raise
        if self._unsure:
            self._unsure.pop(given, None)

    async def read(self) -> AsyncIterator[bytes]:
        last = 0
        while page := await self._page(last):
            for _, line in page:
                yield line.encode()
            last = page[-1][0]

    async def ends(self) -> str:
        rows = await self._database.run(lambda connection: fetch(connection, "SELECT text FROM audit_ends"))
        return str(rows[0][0]) if rows else ""

    async def remove(self, before: float) -> int:
        async def delete(connection: Any) -> int:
            ends = await _locked(connection)
            oldest = await fetch(connection, OLDEST, (before,))
            if not oldest:
                return 0
            removed = Link(number=oldest[0][0], hash=oldest[0][1])
            await connection.execute(SET_ENDS, (shortened(ends, removed, self._key),))
            gone = await connection.execute("DELETE FROM audit_lines WHERE number <= %s", (removed.number,))
            return int(gone.rowcount)

        return await self._database.run(delete)

    async def _page(self, last: int) -> list[tuple[Any, ...]]:
        return await self._database.run(lambda connection: fetch(connection, PAGE, (last,)))


async def _locked(connection: Any) -> str:
    await connection.execute(BEGIN)
    return str((await fetch(connection, LOCK))[0][0])
