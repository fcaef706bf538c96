"""Sessions: in memory, or in a file that a restarted process goes on with."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import OrderedDict
from dataclasses import replace
from pathlib import Path
from typing import Any

from pegboard.errors import SessionConflict
from pegboard.model import Session, ToolId
from pegboard.seams import Clock
from pegboard.stores.sqlite_file import OnFile, SqliteFile
from pegboard.stores.sqlite_state import REMEDY, STATE

SWEEP = 200
"""Saves between two removals of what has expired."""


class MemorySessions:
    """The last ``capacity`` sessions, as long as the process lives; each for ``ttl`` seconds after its last change."""

    def __init__(self, clock: Clock, *, ttl: float = float("inf"), capacity: int = 10_000) -> None:
        self._clock = clock
        self._ttl = ttl
        self._capacity = capacity
        self._sessions: OrderedDict[str, tuple[float, Session]] = OrderedDict()

    async def load(self, key: str) -> Session | None:
        expires, session = self._sessions.get(key, (0.0, None))
        return session if expires > self._clock.time() else None

    async def save(self, session: Session) -> Session:
        stored = await self.load(session.id)
        if (stored.version if stored else 0) != session.version:
            raise SessionConflict
        saved = replace(session, version=session.version + 1)
        self._sessions[session.id] = (self._clock.time() + self._ttl, saved)
        self._sessions.move_to_end(session.id)
        while len(self._sessions) > self._capacity:
            self._sessions.popitem(last=False)
        return saved

    async def forget(self, key: str) -> None:
        self._sessions.pop(key, None)


class SqliteSessions(OnFile):
    """Sessions in one file, each for ``ttl`` seconds after its last change. Several processes may share it."""

    def __init__(self, path: Path, clock: Clock, *, ttl: float) -> None:
        self._file = SqliteFile(path, STATE, remedy=REMEDY)
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
        return None if row is None else decoded(key, *row)

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
            values = (saved.version, now + self._ttl, encoded(saved))
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


def key_of(session: str, endpoint: str = "") -> str:
    """What stands in a store for the id that a client has, at the whole board or a toolset.

    The id lets its holder speak for the session: a store gets its hash.
    """
    return hashlib.sha256(f"{endpoint}\0{session}".encode()).hexdigest()


def encoded(session: Session) -> str:
    """Everything but the id and the version, as JSON."""
    fields: dict[str, Any] = {
        "enabled": [list(tool) for tool in session.enabled],
        "answered": sorted(session.answered),
        "notices": session.notices,
        "client": session.client,
        "replica": session.replica,
    }
    return json.dumps(fields, separators=(",", ":"))


def decoded(key: str, version: int, state: str) -> Session:
    fields = json.loads(state)
    return Session(
        id=key,
        enabled=tuple(ToolId(*each) for each in fields["enabled"]),
        answered=frozenset(fields["answered"]),
        notices=fields["notices"],
        client=fields["client"],
        replica=fields.get("replica"),
        version=version,
    )
