"""What use taught, kept as long as the process lives."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence

from pegboard.clock import SYSTEM_CLOCK
from pegboard.habits import HALF_LIFE, Habit, HabitKey
from pegboard.model import Floats
from pegboard.protocols import Clock


class MemoryHabits:
    """The ``capacity`` rows that were added to last."""

    def __init__(self, *, half_life: float = HALF_LIFE, clock: Clock = SYSTEM_CLOCK, capacity: int = 16384) -> None:
        self._half_life = half_life
        self._clock = clock
        self._capacity = capacity
        self._known: OrderedDict[HabitKey, Habit] = OrderedDict()

    async def add(self, sums: Mapping[HabitKey, Floats]) -> None:
        now = self._clock.time()
        for key, more in sums.items():
            known = self._known.get(key)
            self._known[key] = Habit(sums=more, used=now) if known is None else known.joined(more, now, self._half_life)
            self._known.move_to_end(key)
        while len(self._known) > self._capacity:
            self._known.popitem(last=False)

    async def read(self, keys: Sequence[str]) -> Mapping[HabitKey, Habit]:
        wanted = frozenset(keys)
        return {key: habit for key, habit in self._known.items() if key.key in wanted}
