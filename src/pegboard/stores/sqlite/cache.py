"""Embeddings and tool definitions in files of the cache folder."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from pegboard.clock import SYSTEM_CLOCK
from pegboard.errors import ConfigError
from pegboard.model import Floats
from pegboard.protocols import Clock, Listing
from pegboard.stores.database import Migration, batches
from pegboard.stores.retention import MARKED
from pegboard.stores.sqlite.database import LAST_USE, FileStore, SqliteFile

EMBEDDING_MIGRATIONS = (
    Migration(
        "embeddings",
        ("CREATE TABLE IF NOT EXISTS embeddings (key TEXT PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID",),
    ),
    LAST_USE["embeddings"],
)
REMEDY = "Delete the file (it is only a cache), or set cache_dir to a writable folder."
DEFINITION_MIGRATIONS = (
    Migration(
        "definitions",
        ("CREATE TABLE IF NOT EXISTS definitions (key TEXT PRIMARY KEY, listing TEXT NOT NULL) WITHOUT ROWID",),
    ),
    LAST_USE["definitions"],
)


class SqliteEmbeddings(FileStore):
    """Vectors as float32 blobs. A damaged file raises ConfigError that names it."""

    def __init__(self, path: Path, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self.path = path
        self._file = SqliteFile(path, EMBEDDING_MIGRATIONS, remedy=REMEDY)
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


class SqliteDefinitions(FileStore):
    """Listings as JSON. A damaged file raises ConfigError that names it."""

    def __init__(self, path: Path, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self.path = path
        self._file = SqliteFile(path, DEFINITION_MIGRATIONS, remedy=REMEDY)
        self._clock = clock

    async def get(self, key: str) -> Listing | None:
        now = self._clock.time()

        def read(connection: sqlite3.Connection) -> Listing | None:
            row = connection.execute("SELECT listing, used FROM definitions WHERE key = ?", (key,)).fetchone()
            if row is None:
                return None
            if row[1] <= now - MARKED:
                connection.execute("UPDATE definitions SET used = ? WHERE key = ?", (now, key))
            return _decoded(row[0])

        try:
            return await self._file.run(read)
        except (ValueError, TypeError, KeyError) as error:
            raise ConfigError(f"The file {str(self.path)!r} holds an invalid listing.", remedy=REMEDY) from error

    async def put(self, key: str, listing: Listing) -> None:
        text, now = _encoded(listing), self._clock.time()

        def write(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT OR REPLACE INTO definitions (key, listing, used) VALUES (?, ?, ?)", (key, text, now)
            )

        await self._file.run(write)

    async def forget_unused(self, before: float) -> int:
        """Remove listings last used before a time; the number removed."""

        def delete(connection: sqlite3.Connection) -> int:
            return connection.execute("DELETE FROM definitions WHERE used <= ?", (before,)).rowcount

        return await self._file.run(delete)


def _encoded(listing: Listing) -> str:
    fields = {"introduction": listing.introduction, "pages": listing.pages, "protocol": listing.protocol}
    return json.dumps(fields)


def _decoded(text: str) -> Listing:
    fields = json.loads(text)
    return Listing(introduction=fields["introduction"], pages=tuple(fields["pages"]), protocol=fields["protocol"])
