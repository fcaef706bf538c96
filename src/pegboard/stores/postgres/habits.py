"""What use taught, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pegboard.clock import SYSTEM_CLOCK
from pegboard.habits import HALF_LIFE, Habit, HabitKey
from pegboard.model import Floats
from pegboard.protocols import Clock
from pegboard.stores.postgres.database import PostgresDatabase, execute_each, fetch
from pegboard.stores.sql.statements import READ_HABITS, habit_row, habits_by_key

BEGIN = "INSERT INTO habits (key, server, name, sums, used) VALUES (%s, %s, %s, ''::bytea, %s) ON CONFLICT DO NOTHING"
LOCK = (
    f"{READ_HABITS} = ANY(%s) AND (key, server, name) IN "  # noqa: S608
    "(SELECT * FROM unnest(%s::text[], %s::text[], %s::text[])) "
    'ORDER BY key COLLATE "C", server COLLATE "C", name COLLATE "C" FOR UPDATE'
)
CHANGE = "UPDATE habits SET sums = %s, used = %s WHERE key = %s AND server = %s AND name = %s"


class PostgresHabits:
    def __init__(
        self, database: PostgresDatabase, *, half_life: float = HALF_LIFE, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._database = database
        self._half_life = half_life
        self._clock = clock

    async def add(self, sums: Mapping[HabitKey, Floats]) -> None:
        if sums:
            await self._database.run(lambda connection: self._update(connection, sums))

    async def read(self, keys: Sequence[str]) -> Mapping[HabitKey, Habit]:
        if not keys:
            return {}
        return habits_by_key(
            await self._database.run(lambda connection: fetch(connection, f"{READ_HABITS} = ANY(%s)", (list(keys),)))
        )

    async def _update(self, connection: Any, sums: Mapping[HabitKey, Floats]) -> None:
        """Rows are inserted and locked in a fixed order, so that two writers cannot deadlock. A new row is empty: what
        is added replaces it."""
        now, order = self._clock.time(), sorted(sums)
        before = await _locked(connection, order, now)
        if len(before) < len(order):  # another process removed some before they were locked
            before = await _locked(connection, order, now)
        new = {key: before[key].joined(sums[key], now, self._half_life) for key in order}
        rows = (habit_row(key, habit) for key, habit in new.items())
        await execute_each(connection, CHANGE, [(written, used, *key) for *key, written, used in rows])


async def _locked(connection: Any, keys: Sequence[HabitKey], now: float) -> Mapping[HabitKey, Habit]:
    await execute_each(connection, BEGIN, [(*key, now) for key in keys])
    columns = tuple(map(list, zip(*keys, strict=True)))
    return habits_by_key(await fetch(connection, LOCK, (list({key.key for key in keys}), *columns)))
