"""Sessions in the state file, and signing keys in a file that only its owner can read."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pegboard.errors import SessionConflict
from pegboard.model import Session, SigningKey
from pegboard.protocols import Clock
from pegboard.stores.database import Migration
from pegboard.stores.sessions import decode_session, encode_session, in_order, signing_key
from pegboard.stores.sql.tables import SWEEP
from pegboard.stores.sqlite.database import REMEDY, STATE_MIGRATIONS, FileStore, SqliteFile

KEY_MIGRATIONS = (
    Migration(
        "signing keys",
        ("CREATE TABLE signing_keys (id TEXT PRIMARY KEY, made REAL NOT NULL, secret TEXT NOT NULL) WITHOUT ROWID",),
    ),
)
KEY_REMEDY = "Set state_dir to a writable folder, or delete the file: clients then start new sessions."


class SqliteSessions(FileStore):
    """Sessions in one file, each for ``ttl`` seconds after its last change. Several processes may share it."""

    def __init__(self, path: Path, clock: Clock, *, ttl: float) -> None:
        self._file = SqliteFile(path, STATE_MIGRATIONS, remedy=REMEDY)
        self._clock = clock
        self._ttl = ttl
        self._saves = 0

    async def load(self, key: str) -> Session | None:
        now = self._clock.time()

        def read(connection: sqlite3.Connection) -> tuple[int, str] | None:
            query = "SELECT version, state FROM sessions WHERE key = ? AND expires > ?"
            row: tuple[int, str] | None = connection.execute(query, (key, now)).fetchone()
            return row

        row = await self._file.run(read)
        return None if row is None else decode_session(key, *row)

    async def save(self, session: Session) -> Session:
        saved = replace(session, version=session.version + 1)
        now = self._clock.time()
        self._saves += 1
        sweep = self._saves % SWEEP == 1

        def write(connection: sqlite3.Connection) -> bool:
            if sweep:
                connection.execute("DELETE FROM sessions WHERE expires <= ?", (now,))
            else:
                connection.execute("DELETE FROM sessions WHERE key = ? AND expires <= ?", (session.id, now))
            values = (saved.version, now + self._ttl, encode_session(saved))
            if session.version:
                changed = connection.execute(
                    "UPDATE sessions SET version = ?, expires = ?, state = ? WHERE key = ? AND version = ?",
                    (*values, session.id, session.version),
                )
            else:
                changed = connection.execute(
                    "INSERT OR IGNORE INTO sessions (version, expires, state, key) VALUES (?, ?, ?, ?)",
                    (*values, session.id),
                )
            return changed.rowcount == 1

        if not await self._file.run(write):
            raise SessionConflict
        return saved

    async def forget(self, key: str) -> None:
        def delete(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM sessions WHERE key = ?", (key,))

        await self._file.run(delete)


class SqliteSigningKeys(FileStore):
    """Signing keys in a file that only its owner can read."""

    def __init__(self, path: Path) -> None:
        self._file = SqliteFile(path, KEY_MIGRATIONS, remedy=KEY_REMEDY, private=True)

    async def share(self, keys: Sequence[SigningKey], *, forget: float) -> Sequence[SigningKey]:
        rows = [(key.id, key.made, key.secret.hex()) for key in keys]

        def write(connection: sqlite3.Connection) -> list[tuple[str, float, str]]:
            connection.executemany("INSERT OR IGNORE INTO signing_keys (id, made, secret) VALUES (?, ?, ?)", rows)
            connection.execute("DELETE FROM signing_keys WHERE made < ?", (forget,))
            return connection.execute("SELECT id, made, secret FROM signing_keys").fetchall()

        return in_order(signing_key(*row) for row in await self._file.run_alone(write))
