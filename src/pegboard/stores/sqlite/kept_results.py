"""Results that callers may read on, in a file that only its owner can read."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from pegboard.protocols import Clock
from pegboard.stores.database import Migration
from pegboard.stores.sql import result_rows
from pegboard.stores.sqlite.database import FileStore, SqliteFile

MIGRATIONS = (Migration("kept results", result_rows.table("BLOB", "REAL", "INTEGER")),)
REMEDY = "Set state_dir to a writable folder, or delete the file: tools are then called again."
EXPIRE, PUT, EVICT, GET, FORGET = (
    statement.format("?")
    for statement in (result_rows.EXPIRE, result_rows.PUT, result_rows.EVICT, result_rows.GET, result_rows.FORGET)
)


class SqliteResults(FileStore):
    """Several processes may share the file."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._file = SqliteFile(path, MIGRATIONS, remedy=REMEDY, private=True)
        self._clock = clock

    async def put(self, owner: str, handle: str, body: bytes, *, seconds: float, most: int) -> bool:
        if len(body) > most:
            return False
        now = self._clock.time()

        def write(connection: sqlite3.Connection) -> None:
            connection.execute(EXPIRE, (now,))
            connection.execute(PUT, (owner, handle, now + seconds, len(body), body))
            connection.execute(EVICT, (owner, handle, owner, most))

        await self._file.run_alone(write)
        return True

    async def get(self, owner: str, handle: str) -> bytes | None:
        now = self._clock.time()

        def read(connection: sqlite3.Connection) -> bytes | None:
            row = connection.execute(GET, (owner, handle, now)).fetchone()
            return None if row is None else bytes(row[0])

        return await self._file.run(read)

    async def expire(self) -> int:
        now = self._clock.time()
        return await self._file.run(lambda connection: connection.execute(EXPIRE, (now,)).rowcount)

    async def forget(self, owner: str | None = None) -> int:
        def delete(connection: sqlite3.Connection) -> int:
            if owner is None:
                return connection.execute(result_rows.FORGET_ALL).rowcount
            return connection.execute(FORGET, (owner,)).rowcount

        return await self._file.run(delete)
