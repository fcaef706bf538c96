"""Tool definitions that outlive the process."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from pegboard.clock import SYSTEM_CLOCK
from pegboard.errors import ConfigError
from pegboard.seams import Clock, Listing
from pegboard.stores.last_use import LAST_USE, MARKED
from pegboard.stores.migrations import Migration
from pegboard.stores.sqlite_file import OnFile, SqliteFile

MIGRATIONS = (
    Migration(
        "definitions",
        ("CREATE TABLE IF NOT EXISTS definitions (key TEXT PRIMARY KEY, listing TEXT NOT NULL) WITHOUT ROWID",),
    ),
    LAST_USE["definitions"],
)
REMEDY = "Delete the file (it is only a cache), or set cache_dir to a folder that can be written."


class SqliteDefinitions(OnFile):
    """Listings as JSON; a damaged file is an error that names it."""

    def __init__(self, path: Path, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self.path = path
        self._file = SqliteFile(path, MIGRATIONS, remedy=REMEDY)
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
            raise ConfigError(f"The file {str(self.path)!r} holds what is no listing.", remedy=REMEDY) from error

    async def put(self, key: str, listing: Listing) -> None:
        text, now = _encoded(listing), self._clock.time()

        def write(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT OR REPLACE INTO definitions (key, listing, used) VALUES (?, ?, ?)", (key, text, now)
            )

        await self._file.run(write)

    async def forget_unused(self, before: float) -> int:
        """Remove what was last used before a moment; how many there were."""

        def delete(connection: sqlite3.Connection) -> int:
            return connection.execute("DELETE FROM definitions WHERE used <= ?", (before,)).rowcount

        return await self._file.run(delete)


def _encoded(listing: Listing) -> str:
    fields = {"introduction": listing.introduction, "pages": listing.pages, "protocol": listing.protocol}
    return json.dumps(fields)


def _decoded(text: str) -> Listing:
    fields = json.loads(text)
    return Listing(introduction=fields["introduction"], pages=tuple(fields["pages"]), protocol=fields["protocol"])
