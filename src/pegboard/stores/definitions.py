"""Tool definitions that outlive the process."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from pegboard.errors import ConfigError
from pegboard.seams import Listing
from pegboard.stores.migrations import Migration
from pegboard.stores.sqlite_file import SqliteFile

MIGRATIONS = (
    Migration(
        "definitions",
        ("CREATE TABLE IF NOT EXISTS definitions (key TEXT PRIMARY KEY, listing TEXT NOT NULL) WITHOUT ROWID",),
    ),
)
REMEDY = "Delete the file (it is only a cache), or set cache_dir to a folder that can be written."


class SqliteDefinitions:
    """Listings as JSON; a damaged file is an error that names it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = SqliteFile(path, MIGRATIONS, remedy=REMEDY)

    async def get(self, key: str) -> Listing | None:
        def read(connection: sqlite3.Connection) -> Listing | None:
            row = connection.execute("SELECT listing FROM definitions WHERE key = ?", (key,)).fetchone()
            return None if row is None else _decoded(row[0])

        try:
            return await self._file.run(read)
        except (ValueError, TypeError, KeyError) as error:
            raise ConfigError(f"The file {str(self.path)!r} holds what is no listing.", remedy=REMEDY) from error

    async def put(self, key: str, listing: Listing) -> None:
        text = _encoded(listing)

        def write(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT OR REPLACE INTO definitions VALUES (?, ?)", (key, text))

        await self._file.run(write)

    def close(self) -> None:
        self._file.close()


def _encoded(listing: Listing) -> str:
    fields = {"introduction": listing.introduction, "pages": listing.pages, "protocol": listing.protocol}
    return json.dumps(fields)


def _decoded(text: str) -> Listing:
    fields = json.loads(text)
    return Listing(introduction=fields["introduction"], pages=tuple(fields["pages"]), protocol=fields["protocol"])
