"""One SQLite file: write-ahead log, safe against kill -9, shared by several processes."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from pegboard.errors import ConfigError
from pegboard.stores.migrations import Migration, outstanding

BUSY_SECONDS = 10.0
LEDGER = "CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY) WITHOUT ROWID"

T = TypeVar("T")


class SqliteFile:
    """A connection that is opened with its first use. Work is done on a thread, one piece at a time.

    ``remedy`` is what to do about a file that cannot be used: ConfigError says it. A ``private`` file is made so that
    only its owner can read it.
    """

    def __init__(self, path: Path, migrations: Sequence[Migration], *, remedy: str, private: bool = False) -> None:
        self.path = path
        self._private = private
        self._migrations = migrations
        self._remedy = remedy
        self.amiss = ""
        """What went wrong with it last, for everybody to read, until something can be written again."""
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """What ``work`` returns; its changes are one transaction.

        ``work`` may not return a cursor: while one is open, closing the file would not close it.
        """
        return await asyncio.to_thread(self.run_now, work)

    async def run_alone(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """As ``run``, with no other writer between what ``work`` reads and what it writes."""

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
            self.amiss = f"The file {self.path.name} cannot be used: {_said(error)}."
            raise ConfigError(f"The file {str(self.path)!r} cannot be used: {error}.", remedy=self._remedy) from error

    def close(self) -> None:
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
        """Asked again under the lock: another process may have been first."""
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


def _said(error: sqlite3.Error | OSError) -> str:
    """Without the folder, which an OSError names."""
    return error.strerror or type(error).__name__ if isinstance(error, OSError) else str(error)


class OnFile:
    """A store that is a file, or a part of one."""

    _file: SqliteFile

    @property
    def amiss(self) -> str:
        """What is wrong with the file, for everybody to read; nothing, if nothing is known to be."""
        return self._file.amiss

    def close(self) -> None:
        self._file.close()


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Where another process turns the log on at the same moment, SQLite does not wait by itself."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.005)
