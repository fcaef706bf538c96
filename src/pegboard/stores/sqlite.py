"""Embeddings that outlive the process."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from pegboard.model import Floats
from pegboard.stores.migrations import Migration
from pegboard.stores.sqlite_file import SqliteFile

MIGRATIONS = (
    Migration(
        "embeddings",
        ("CREATE TABLE IF NOT EXISTS embeddings (key TEXT PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID",),
    ),
)
REMEDY = "Delete the file (it is only a cache), or set cache_dir to a folder that can be written."
KEYS_PER_QUERY = 500


class SqliteEmbeddings:
    """Vectors as float32 blobs; a damaged file is an error that names it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = SqliteFile(path, MIGRATIONS, remedy=REMEDY)

    async def get(self, keys: Sequence[str]) -> Mapping[str, Floats]:
        wanted = list(dict.fromkeys(keys))

        def read(connection: sqlite3.Connection) -> dict[str, Floats]:
            found: dict[str, Floats] = {}
            for start in range(0, len(wanted), KEYS_PER_QUERY):
                some = wanted[start : start + KEYS_PER_QUERY]
                marks = ",".join("?" * len(some))
                rows = connection.execute(f"SELECT key, vector FROM embeddings WHERE key IN ({marks})", some)  # noqa: S608
                found |= {key: np.frombuffer(blob, np.float32) for key, blob in rows}
            return found

        return await self._file.run(read)

    async def put(self, vectors: Mapping[str, Floats]) -> None:
        rows = [(key, np.asarray(vector, np.float32).tobytes()) for key, vector in vectors.items()]

        def write(connection: sqlite3.Connection) -> None:
            connection.executemany("INSERT OR REPLACE INTO embeddings VALUES (?, ?)", rows)

        await self._file.run(write)

    def close(self) -> None:
        self._file.close()
