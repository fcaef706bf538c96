"""What the turns of conversations with models have summed up to: in memory, or in a file."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

from pegboard.clock import SYSTEM_CLOCK
from pegboard.seams import Clock
from pegboard.stores.batches import batches
from pegboard.stores.sqlite_file import OnFile, SqliteFile
from pegboard.stores.sqlite_state import REMEDY, STATE
from pegboard.traffic import MOST, Seen

COLUMNS = tuple(field.name for field in fields(Seen))
READ = f"SELECT key, {', '.join(COLUMNS)} FROM lessons WHERE key"  # noqa: S608
WEIGHT = f"CASE WHEN lessons.conversations < {MOST!r} THEN 1.0 ELSE 0.5 END"
JOINED = ", ".join(f"{name} = {WEIGHT} * lessons.{name} + excluded.{name}" for name in COLUMNS)


def adding(mark: str) -> str:
    """`Seen.joined` as a statement, with ``mark`` for each value: a key, its sums, and when they are added."""
    marks = ", ".join([mark] * (len(COLUMNS) + 2))
    return (
        f"INSERT INTO lessons (key, {', '.join(COLUMNS)}, used) VALUES ({marks}) "  # noqa: S608
        f"ON CONFLICT (key) DO UPDATE SET {JOINED}, used = excluded.used"
    )


def rows_of(sums: Mapping[str, Seen], now: float) -> list[tuple[Any, ...]]:
    """In one order by everybody: nobody waits for somebody who waits for him."""
    return [(key, *astuple(seen), now) for key, seen in sorted(sums.items())]


def known(rows: Iterable[Sequence[Any]]) -> dict[str, Seen]:
    return {key: Seen(**dict(zip(COLUMNS, values, strict=True))) for key, *values in rows}


class MemoryLessons:
    """Of the last ``capacity`` keys that something was added to."""

    def __init__(self, capacity: int = 16384) -> None:
        self._capacity = capacity
        self._known: OrderedDict[str, Seen] = OrderedDict()

    async def add(self, sums: Mapping[str, Seen]) -> None:
        for key, seen in sums.items():
            self._known[key] = self._known.get(key, Seen()).joined(seen)
            self._known.move_to_end(key)
        while len(self._known) > self._capacity:
            self._known.popitem(last=False)

    async def read(self, keys: Sequence[str]) -> Mapping[str, Seen]:
        return {key: self._known[key] for key in keys if key in self._known}


class SqliteLessons(OnFile):
    """Lessons in one file, over all processes that share it."""

    def __init__(self, path: Path, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._file = SqliteFile(path, STATE, remedy=REMEDY)
        self._clock = clock

    async def add(self, sums: Mapping[str, Seen]) -> None:
        query, rows = adding("?"), rows_of(sums, self._clock.time())

        def write(connection: sqlite3.Connection) -> None:
            connection.executemany(query, rows)

        if rows:
            await self._file.run_alone(write)

    async def read(self, keys: Sequence[str]) -> Mapping[str, Seen]:
        def read(connection: sqlite3.Connection) -> dict[str, Seen]:
            found: dict[str, Seen] = {}
            for some in batches(dict.fromkeys(keys)):
                marks = ", ".join("?" * len(some))
                found |= known(connection.execute(f"{READ} IN ({marks})", some))
            return found

        return await self._file.run(read) if keys else {}
