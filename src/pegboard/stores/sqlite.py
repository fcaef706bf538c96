"""One SQLite file: write-ahead log, safe against kill -9, shared by several processes."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from pegboard.errors import ConfigError
from pegboard.model import Floats

SCHEMA = "CREATE TABLE IF NOT EXISTS embeddings (key TEXT PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID"
KEYS_PER_QUERY = 500
BUSY_SECONDS = 10.0


class SqliteEmbeddings:
    """Vectors as float32 blobs. Work is done on a thread; a damaged file is an error that names it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    async def get(self, keys: Sequence[str]) -> Mapping[str, Floats]:
        return await asyncio.to_thread(self._get, list(dict.fromkeys(keys)))

    async def put(self, vectors: Mapping[str, Floats]) -> None:
        await asyncio.to_thread(self._put, dict(vectors))

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def __del__(self) -> None:
        self.close()

    def _get(self, keys: list[str]) -> dict[str, Floats]:
        found: dict[str, Floats] = {}
        with self._lock, self._explained():
            for start in range(0, len(keys), KEYS_PER_QUERY):
                some = keys[start : start + KEYS_PER_QUERY]
                marks = ",".join("?" * len(some))
                rows = self._open().execute(f"SELECT key, vector FROM embeddings WHERE key IN ({marks})", some)  # noqa: S608
                found |= {key: np.frombuffer(blob, np.float32) for key, blob in rows}
        return found

    def _put(self, vectors: dict[str, Floats]) -> None:
        rows = [(key, np.asarray(vector, np.float32).tobytes()) for key, vector in vectors.items()]
        with self._lock, self._explained(), self._open() as connection:
            connection.executemany("INSERT OR REPLACE INTO embeddings VALUES (?, ?)", rows)

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, check_same_thread=False)
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                with connection:
                    connection.execute(SCHEMA)
            except sqlite3.Error:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _explained(self) -> _Explained:
        return _Explained(self.path)


class _Explained:
    """Turns SQLite's and the file system's errors into ours, with the file and what to do."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, sqlite3.Error | OSError):
            raise ConfigError(
                f"The embedding cache {str(self._path)!r} cannot be used: {error}.",
                remedy="Delete the file (it is only a cache), or set cache_dir to a folder that can be written.",
            ) from error
