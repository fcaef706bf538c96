"""The secrets of the servers: in memory, or in a file of their own that nobody else can read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from operator import attrgetter
from pathlib import Path

from pegboard.model import SigningKey
from pegboard.stores.migrations import Migration
from pegboard.stores.sqlite_file import OnFile, SqliteFile

MIGRATIONS = (
    Migration(
        "signing keys",
        ("CREATE TABLE signing_keys (id TEXT PRIMARY KEY, made REAL NOT NULL, secret TEXT NOT NULL) WITHOUT ROWID",),
    ),
)
REMEDY = "Set state_dir to a folder that can be written, or delete the file: clients then begin their sessions anew."


class MemorySigningKeys:
    """As long as the process lives."""

    def __init__(self) -> None:
        self._keys: dict[str, SigningKey] = {}

    async def share(self, keys: Sequence[SigningKey], *, forget: float) -> Sequence[SigningKey]:
        known = {key.id: key for key in keys} | self._keys
        self._keys = {key.id: key for key in known.values() if key.made >= forget}
        return in_order(self._keys.values())


class SqliteSigningKeys(OnFile):
    """A file that only its owner can read."""

    def __init__(self, path: Path) -> None:
        self._file = SqliteFile(path, MIGRATIONS, remedy=REMEDY, private=True)

    async def share(self, keys: Sequence[SigningKey], *, forget: float) -> Sequence[SigningKey]:
        rows = [(key.id, key.made, key.secret.hex()) for key in keys]

        def write(connection: sqlite3.Connection) -> list[tuple[str, float, str]]:
            connection.executemany("INSERT OR IGNORE INTO signing_keys (id, made, secret) VALUES (?, ?, ?)", rows)
            connection.execute("DELETE FROM signing_keys WHERE made < ?", (forget,))
            return connection.execute("SELECT id, made, secret FROM signing_keys").fetchall()

        return in_order(key_of(*row) for row in await self._file.run_alone(write))


def key_of(id: str, made: float, secret: str) -> SigningKey:  # noqa: A002
    """The key of a row; ``secret`` is hexadecimal there."""
    return SigningKey(id=id, made=made, secret=bytes.fromhex(secret))


def in_order(keys: Iterable[SigningKey]) -> list[SigningKey]:
    """The oldest first, and every process the same."""
    return sorted(keys, key=attrgetter("made", "id"))
