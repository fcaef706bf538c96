"""What use taught, in the state file."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

from pegboard.clock import SYSTEM_CLOCK
from pegboard.habits import HALF_LIFE, Habit, HabitKey
from pegboard.model import Floats
from pegboard.protocols import Clock
from pegboard.stores.database import batches
from pegboard.stores.sql.statements import READ_HABITS, habit_row, habits_by_key
from pegboard.stores.sqlite.database import REMEDY, STATE_MIGRATIONS, FileStore, SqliteFile

WRITE = "INSERT OR REPLACE INTO habits (key, server, name, sums, used) VALUES (?, ?, ?, ?, ?)"
READ_ONE = f"{READ_HABITS} = ? AND server = ? AND name = ?"


class SqliteHabits(FileStore):
    """Habits in one file, shared by all processes that use it."""

    def __init__(self, path: Path, *, half_life: float = HALF_LIFE, clock: Clock = SYSTEM_CLOCK) -> None:
        self._file = SqliteFile(path, STATE_MIGRATIONS, remedy=REMEDY)
        self._half_life = half_life
        self._clock = clock

    async def add(self, sums: Mapping[HabitKey, Floats]) -> None:
        now = self._clock.time()

        def write(connection: sqlite3.Connection) -> None:
            for key, more in sums.items():
                known = habits_by_key(connection.execute(READ_ONE, key)).get(key)
                new = Habit(sums=more, used=now) if known is None else known.joined(more, now, self._half_life)
                connection.execute(WRITE, habit_row(key, new))

        if sums:
            await self._file.run_alone(write)

    async def read(self, keys: Sequence[str]) -> Mapping[HabitKey, Habit]:
        def read(connection: sqlite3.Connection) -> dict[HabitKey, Habit]:
            found: dict[HabitKey, Habit] = {}
            for some in batches(dict.fromkeys(keys)):
                marks = ", ".join("?" * len(some))
                found |= habits_by_key(connection.execute(f"{READ_HABITS} IN ({marks})", some))
            return found

        return await self._file.run(read) if keys else {}
