"""Sums over shadow requests: an EventSink that keeps them in a file on this machine.

The file has names of tools and models, but no text of conversations.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pegboard.events import Event, ShadowMeasured
from pegboard.stores.database import Migration
from pegboard.stores.sqlite.database import SqliteFile
from pegboard.stores.write_behind import WriteBehind

FILE = "shadow.sqlite"
OTHERS = "…"
"""Name under which everything beyond the limits below is counted."""
MOST_ROUTES = 1000
MOST_NAMES = 2000
"""Most tools, or reasons, per route. Their names come from clients."""
LONGEST = 200
MOST_WAITING = 100_000
REMEDY = "Move the file away; counting then starts from zero."

ROUTE = ("upstream", "model", "key", "policy")
SUMS = ("requests", "measured", "tools", "kept", "tokens_before", "tokens_after")
OF_ROUTE = ", ".join(f"{name} TEXT" for name in ROUTE)
TABLES = (
    Migration(
        "shadow counts",
        (
            f"CREATE TABLE routes ({OF_ROUTE}, {', '.join(f'{name} INTEGER NOT NULL' for name in SUMS)}, "
            f"first REAL NOT NULL, last REAL NOT NULL, PRIMARY KEY ({', '.join(ROUTE)})) WITHOUT ROWID",
            f"CREATE TABLE calls ({OF_ROUTE}, tool TEXT, called INTEGER NOT NULL, missed INTEGER NOT NULL, "
            f"PRIMARY KEY ({', '.join(ROUTE)}, tool)) WITHOUT ROWID",
            f"CREATE TABLE unmeasured ({OF_ROUTE}, reason TEXT, requests INTEGER NOT NULL, "
            f"PRIMARY KEY ({', '.join(ROUTE)}, reason)) WITHOUT ROWID",
        ),
    ),
)
IS_ROUTE = " AND ".join(f"{name} = ?" for name in ROUTE)
NAMED = {"calls": "tool", "unmeasured": "reason"}
"""The column of each table that names what is counted."""
Route = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteCounts:
    """Sums for one upstream, model, key and policy.

    ``requests`` are all requests and ``measured`` those that were measured. ``tools`` and ``tokens_before`` were
    offered in these; ``kept`` and ``tokens_after`` would have remained. ``calls`` maps a tool to its calls and its
    misses; ``unmeasured`` maps a reason to the requests that were not measured. ``first`` and ``last`` are seconds
    since the epoch.
    """

    upstream: str
    model: str
    key: str
    policy: str
    requests: int
    measured: int
    tools: int
    kept: int
    tokens_before: int
    tokens_after: int
    first: float
    last: float
    calls: Mapping[str, tuple[int, int]]
    unmeasured: Mapping[str, int]

    @property
    def called(self) -> int:
        return sum(called for called, _ in self.calls.values())

    @property
    def missed(self) -> int:
        return sum(missed for _, missed in self.calls.values())


class ShadowCounts:
    """The counts in a file that several processes of one machine may share. Call `close` at the end."""

    def __init__(self, path: Path) -> None:
        self._file = SqliteFile(path, TABLES, remedy=REMEDY)
        self._behind: WriteBehind[ShadowMeasured] = WriteBehind(self._add, what="the shadow counts", most=MOST_WAITING)

    def emit(self, event: Event) -> None:
        if isinstance(event, ShadowMeasured):
            self._behind.put(event)

    def read(self) -> list[RouteCounts]:
        """The routes, the most recently used first. Raises ConfigError."""
        return self._file.run_now(_read) if self._file.path.exists() else []

    def forget(self) -> int:
        """Remove all counts; returns the number of requests that were counted. Raises ConfigError."""

        def remove(connection: sqlite3.Connection) -> int:
            (requests,) = connection.execute("SELECT total(requests) FROM routes").fetchone()
            for table in ("routes", "calls", "unmeasured"):
                connection.execute(f"DELETE FROM {table}")  # noqa: S608
            return int(requests)

        return self._file.run_now(remove) if self._file.path.exists() else 0

    def close(self) -> None:
        self._behind.close()
        self._file.close()

    def _add(self, events: Sequence[ShadowMeasured]) -> None:
        def add(connection: sqlite3.Connection) -> None:
            connection.execute("BEGIN IMMEDIATE")
            for event in events:
                _add_one(connection, event)

        self._file.run_now(add)


def _add_one(connection: sqlite3.Connection, event: ShadowMeasured) -> None:
    route = _short(event.upstream), _short(event.model), event.key, event.policy
    sums = [1, int(not event.unmeasured), event.tools, event.kept, event.tokens_before, event.tokens_after]
    settings = ", ".join(f"{name} = {name} + ?" for name in SUMS)

    def update(of: Route) -> bool:
        done = connection.execute(
            f"UPDATE routes SET {settings}, last = max(last, ?) WHERE {IS_ROUTE}",  # noqa: S608
            (*sums, event.at, *of),
        )
        return done.rowcount > 0

    if not update(route):
        route = _room(connection, route)
        if not update(route):
            marks = ", ".join("?" * (len(route) + len(sums) + 2))
            connection.execute(f"INSERT INTO routes VALUES ({marks})", (*route, *sums, event.at, event.at))  # noqa: S608
    if event.unmeasured:
        _count(connection, "unmeasured", route, _short(event.unmeasured), {"requests": 1})
    for tool in event.called:
        _count(connection, "calls", route, _short(tool), {"called": 1, "missed": int(tool in event.missed)})


def _room(connection: sqlite3.Connection, route: Route) -> Route:
    """The route, or the one for everything else if there are too many routes."""
    (there,) = connection.execute("SELECT count(*) FROM routes").fetchone()
    return route if there < MOST_ROUTES else (OTHERS, OTHERS, OTHERS, OTHERS)


def _count(connection: sqlite3.Connection, table: str, route: Route, name: str, more: Mapping[str, int]) -> None:
    column = NAMED[table]
    changed = ", ".join(f"{each} = {each} + ?" for each in more)
    update = f"UPDATE {table} SET {changed} WHERE {IS_ROUTE} AND {column} = ?"  # noqa: S608
    if connection.execute(update, (*more.values(), *route, name)).rowcount:
        return
    (there,) = connection.execute(f"SELECT count(*) FROM {table} WHERE {IS_ROUTE}", route).fetchone()  # noqa: S608
    name = name if there < MOST_NAMES else OTHERS
    marks = ", ".join("?" * (len(route) + 1 + len(more)))
    added = ", ".join(f"{each} = {each} + excluded.{each}" for each in more)
    connection.execute(
        f"INSERT INTO {table} VALUES ({marks}) ON CONFLICT DO UPDATE SET {added}",  # noqa: S608
        (*route, name, *more.values()),
    )


def _read(connection: sqlite3.Connection) -> list[RouteCounts]:
    calls = _by_route(connection, "calls", lambda called, missed: (called, missed))
    unmeasured = _by_route(connection, "unmeasured", lambda requests: requests)
    names = (*ROUTE, *SUMS, "first", "last")
    rows = connection.execute(f"SELECT {', '.join(names)} FROM routes ORDER BY last DESC").fetchall()  # noqa: S608
    return [
        RouteCounts(
            **dict(zip(names, row, strict=True)),
            calls=calls.get(row[: len(ROUTE)], {}),
            unmeasured=unmeasured.get(row[: len(ROUTE)], {}),
        )
        for row in rows
    ]


def _by_route(connection: sqlite3.Connection, table: str, value: Callable[..., Any]) -> dict[Route, dict[str, Any]]:
    found: dict[Route, dict[str, Any]] = {}
    for row in connection.execute(f"SELECT * FROM {table}"):  # noqa: S608
        found.setdefault(row[: len(ROUTE)], {})[row[len(ROUTE)]] = value(*row[len(ROUTE) + 1 :])
    return found


def _short(text: str) -> str:
    """The text cut to `LONGEST`, with surrogates replaced, which UTF-8 cannot encode."""
    return text[:LONGEST].encode("utf-8", "replace").decode()
