"""Embeddings that outlive the process."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from pegboard.clock import SYSTEM_CLOCK
from pegboard.model import Floats
from pegboard.seams import Clock
from pegboard.stores.batches import batches
from pegboard.stores.last_use import LAST_USE, MARKED
from pegboard.stores.migrations import Migration
from pegboard.stores.sqlite_file import OnFile, SqliteFile

MIGRATIONS = (
    Migration(
        "embeddings",
        ("CREATE TABLE IF NOT EXISTS embeddings (key TEXT PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID",),
    ),
    LAST_USE["embeddings"],
)
REMEDY = "Delete the file (it is only a cache), or set cache_dir to a folder that can be written."


class SqliteEmbeddings(OnFile):
    """Vectors as float32 blobs; a damaged file is an error that names it."""

    def __init__(self, path: Path, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self.path = path
        self._file = SqliteFile(path, MIGRATIONS, remedy=REMEDY)
        self._clock = clock

    async def get(self, keys: Sequence[str]) -> Mapping[str, Floats]:
        wanted, now = dict.fromkeys(keys), self._clock.time()

        def read(connection: sqlite3.Connection) -> dict[str, Floats]:
            found: dict[str, Floats] = {}
            unmarked: list[tuple[float, str]] = []
            for some in batches(wanted):
                marks = ",".join("?" * len(some))
                rows = connection.execute(f"SELECT key, vector, used FROM embeddings WHERE key IN ({marks})", some)  # noqa: S608
                for key, blob, used in rows:
                    found[key] = np.frombuffer(blob, np.float32)
                    if used <= now - MARKED:
                        unmarked.append((now, key))
            if unmarked:
                connection.executemany("UPDATE embeddings SET used = ? WHERE key = ?", unmarked)
            return found

        return await self._file.run(read)

    async def put(self, vectors: Mapping[str, Floats]) -> None:
        now = self._clock.time()
        rows = [(key, np.asarray(vector, np.float32).tobytes(), now) for key, vector in vectors.items()]

        def write(connection: sqlite3.Connection) -> None:
            connection.executemany("INSERT OR REPLACE INTO embeddings (key, vector, used) VALUES (?, ?, ?)", rows)

        await self._file.run(write)
