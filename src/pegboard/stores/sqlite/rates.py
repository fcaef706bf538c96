"""How often each caller has called lately, in the state file."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from pegboard.protocols import Clock
from pegboard.rate_limits import RateMeter, admission
from pegboard.stores.sql.tables import SWEEP
from pegboard.stores.sqlite.database import REMEDY, STATE_MIGRATIONS, FileStore, SqliteFile


class SqliteRates(FileStore):
    def __init__(self, path: Path, clock: Clock) -> None:
        self._file = SqliteFile(path, STATE_MIGRATIONS, remedy=REMEDY)
        self._clock = clock
        self._taken = 0

    async def take(self, meters: Sequence[RateMeter]) -> float:
        now = self._clock.time()
        self._taken += 1

        def count(connection: sqlite3.Connection) -> float:
            marks = ", ".join("?" * len(meters))
            query = f"SELECT key, arrival FROM rate_meters WHERE key IN ({marks})"  # noqa: S608
            known = dict(connection.execute(query, [meter.key for meter in meters]).fetchall())
            wait, after = admission(meters, known, now)
            connection.executemany("INSERT OR REPLACE INTO rate_meters VALUES (?, ?)", list(after.items()))
            if self._taken % SWEEP == 0:
                connection.execute("DELETE FROM rate_meters WHERE arrival <= ?", (now,))
            return wait

        return await self._file.run_alone(count)
