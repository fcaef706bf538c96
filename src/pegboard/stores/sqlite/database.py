"""One SQLite file (write-ahead log, safe against kill -9, shared by several processes), and the tables in it."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar
from weakref import WeakSet

from pegboard import operating_system
from pegboard.errors import ConfigError, ValueRefused
from pegboard.stores.database import Migration, outstanding
from pegboard.stores.sql.statements import pin_versions

BUSY_SECONDS = 10.0
LEDGER = "CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY) WITHOUT ROWID"
T = TypeVar("T")
REMEDY = "Set state_dir to a writable folder, or move the file away to start with empty state."
NOW = "CAST(strftime('%s', 'now') AS REAL)"
"""Seconds since the epoch, in SQL."""
STATE_MIGRATIONS = (
    Migration(
        "sessions and counts",
        (
            "CREATE TABLE IF NOT EXISTS sessions (key TEXT PRIMARY KEY, version INTEGER NOT NULL, "
            "expires REAL NOT NULL, state TEXT NOT NULL) WITHOUT ROWID",
            "CREATE TABLE IF NOT EXISTS tool_statistics (server TEXT, name TEXT, calls INTEGER NOT NULL, "
            "successes INTEGER NOT NULL, PRIMARY KEY (server, name)) WITHOUT ROWID",
        ),
    ),
    Migration(
        "moving averages",
        (
            "ALTER TABLE tool_statistics ADD COLUMN success REAL",
            "ALTER TABLE tool_statistics ADD COLUMN variance REAL",
            "ALTER TABLE tool_statistics ADD COLUMN failure REAL",
            "ALTER TABLE tool_statistics ADD COLUMN latency REAL",
        ),
    ),
    Migration(
        "spend and pins",
        (
            "CREATE TABLE spend_meters (kind TEXT, name TEXT, spent INTEGER NOT NULL, PRIMARY KEY (kind, name)) "
            "WITHOUT ROWID",
            "CREATE TABLE spend_holds (kind TEXT, name TEXT, reservation TEXT, amount INTEGER NOT NULL, "
            "expires REAL NOT NULL, PRIMARY KEY (kind, name, reservation)) WITHOUT ROWID",
            "CREATE INDEX holds_of_a_reservation ON spend_holds (reservation)",
            "CREATE INDEX holds_by_expiry ON spend_holds (expires)",
            "CREATE TABLE pins (server TEXT, name TEXT, approved TEXT NOT NULL, seen TEXT NOT NULL, "
            "PRIMARY KEY (server, name)) WITHOUT ROWID",
        ),
    ),
    Migration(
        "last use",
        (
            "ALTER TABLE tool_statistics ADD COLUMN used REAL NOT NULL DEFAULT 0",
            f"UPDATE tool_statistics SET used = {NOW}",  # noqa: S608
            "ALTER TABLE spend_meters ADD COLUMN used REAL",
            f"UPDATE spend_meters SET used = {NOW} WHERE kind <> 'key'",  # noqa: S608
        ),
    ),
    Migration(
        "lessons",
        (
            "CREATE TABLE lessons (key TEXT PRIMARY KEY, requests REAL NOT NULL, conversations REAL NOT NULL, "
            "later REAL NOT NULL, asked REAL NOT NULL, growth REAL NOT NULL, wanted REAL NOT NULL, "
            "added REAL NOT NULL, called REAL NOT NULL, changed REAL NOT NULL, returned REAL NOT NULL, "
            "kept REAL NOT NULL, alike REAL NOT NULL, used REAL NOT NULL) WITHOUT ROWID",
        ),
    ),
    Migration(
        "texts of pins",
        ("ALTER TABLE pins ADD COLUMN approved_text TEXT", "ALTER TABLE pins ADD COLUMN seen_text TEXT"),
    ),
    Migration(
        "habits",
        (
            "CREATE TABLE habits (key TEXT NOT NULL, server TEXT NOT NULL, name TEXT NOT NULL, sums BLOB NOT NULL, "
            "used REAL NOT NULL, PRIMARY KEY (key, server, name)) WITHOUT ROWID",
        ),
    ),
    Migration(
        "rate limits",
        ("CREATE TABLE rate_meters (key TEXT PRIMARY KEY, arrival REAL NOT NULL) WITHOUT ROWID",),
    ),
    Migration(
        "switches",
        (
            "CREATE TABLE switches (server TEXT, name TEXT, definition TEXT NOT NULL, who TEXT NOT NULL, "
            "at REAL NOT NULL, PRIMARY KEY (server, name)) WITHOUT ROWID",
        ),
    ),
    Migration("versions of pins", pin_versions("INTEGER")),
    Migration(
        "rejections beside switches",
        (
            "ALTER TABLE switches RENAME TO earlier_switches",
            "CREATE TABLE switches (server TEXT, name TEXT, definition TEXT NOT NULL, who TEXT NOT NULL, "
            "at REAL NOT NULL, PRIMARY KEY (server, name, definition)) WITHOUT ROWID",
            "INSERT INTO switches SELECT server, name, definition, who, at FROM earlier_switches",
            "DROP TABLE earlier_switches",
        ),
    ),
)
"""Existing rows count as used when they are migrated. Files older than named migrations already have the tables of the
first one, without averages."""
LAST_USE = {
    table: Migration(
        f"last use of {table}",
        (
            f"ALTER TABLE {table} ADD COLUMN used REAL NOT NULL DEFAULT 0",
            f"UPDATE {table} SET used = {NOW}",  # noqa: S608
        ),
    )
    for table in ("embeddings", "definitions")
}
"""When rows of a cache were last used, to the day. Existing rows count as used when they are migrated."""


class SqliteFile:
    """A connection that opens on first use. Work runs on a thread of its own, one piece at a time: where another
    process holds the file, nothing else waits.

    ``remedy`` is the remedy of the ConfigError for a file that cannot be used. A ``private`` file is readable only by
    its owner.
    """

    def __init__(self, path: Path, migrations: Sequence[Migration], *, remedy: str, private: bool = False) -> None:
        self.path = path
        self._private = private
        self._migrations = migrations
        self._remedy = remedy
        self.amiss = ""
        """The last failure, without paths, until a write succeeds again."""
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._thread = _thread()
        _files.add(self)

    def begin_anew(self) -> None:
        """In a forked child, which has no thread of its parent and must not touch the parent's connection."""
        operating_system.never_finalize(self._connection)
        self._connection, self._lock, self._thread = None, threading.Lock(), _thread()

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """The result of ``work``, whose changes are one transaction.

        ``work`` must not return a cursor: the file stays open as long as a cursor is.
        """
        return await asyncio.get_running_loop().run_in_executor(self._thread, self.run_now, work)

    async def run_alone(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Like ``run``, with no other writer between the reads and the writes of ``work``."""

        def alone(connection: sqlite3.Connection) -> T:
            connection.execute("BEGIN IMMEDIATE")
            return work(connection)

        return await self.run(alone)

    def run_now(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            with self._lock, self._open() as connection:
                before = connection.total_changes
                result = work(connection)
            if connection.total_changes > before:
                self.amiss = ""
            return result
        except (sqlite3.Error, OSError) as error:
            self.amiss = f"The file {self.path.name} cannot be used: {_without_path(error)}."
            raise ConfigError(f"The file {str(self.path)!r} cannot be used: {error}.", remedy=self._remedy) from error
        except (UnicodeEncodeError, OverflowError) as error:
            raise ValueRefused(
                f"The file {str(self.path)!r} cannot keep this: {error}.",
                remedy="Leave out half of a surrogate pair, and whole numbers of more than 63 bits.",
            ) from error

    def close(self) -> None:
        """The file may be used again: then it is opened again."""
        used, self._thread = self._thread, _thread()
        used.shutdown(wait=False)
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def __del__(self) -> None:
        self.close()

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self._private:
                self.path.touch(mode=0o600)
            connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, check_same_thread=False)
            try:
                _write_ahead(connection)
                connection.execute("PRAGMA synchronous = NORMAL")
                if self._outstanding(connection):
                    self._migrate(connection)
            except (sqlite3.Error, ConfigError):
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _migrate(self, connection: sqlite3.Connection) -> None:
        """Check again under the lock: another process may have migrated first."""
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(LEDGER)
            for step in self._outstanding(connection):
                for statement in step.statements:
                    connection.execute(statement)
                connection.execute("INSERT INTO migrations VALUES (?)", (step.name,))

    def _outstanding(self, connection: sqlite3.Connection) -> list[Migration]:
        ledger = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'migrations'").fetchone()
        applied = {name for (name,) in connection.execute("SELECT name FROM migrations")} if ledger else set()
        return outstanding(self._migrations, applied, f"The file {str(self.path)!r}")


class FileStore:
    """A store in an SQLite file."""

    _file: SqliteFile

    @property
    def amiss(self) -> str:
        """What is wrong with the file, without paths; empty if nothing is known to be wrong."""
        return self._file.amiss

    def close(self) -> None:
        self._file.close()


def _begin_anew() -> None:
    for file in list(_files):
        file.begin_anew()


def _thread() -> ThreadPoolExecutor:
    """One thread, which begins with the first work."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="pegboard-sqlite")


def _without_path(error: sqlite3.Error | OSError) -> str:
    """The error's text without the path that an OSError names."""
    return error.strerror or type(error).__name__ if isinstance(error, OSError) else str(error)


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Turn write-ahead logging on. SQLite does not wait by itself if another process does so at the same moment."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.005)


_files: WeakSet[SqliteFile] = WeakSet()
operating_system.after_fork(_begin_anew)
