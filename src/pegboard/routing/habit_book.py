"""The habits that this process uses: what the store has, and what it has not been told yet."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict, defaultdict
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import numpy as np

from pegboard.errors import PegboardError
from pegboard.habit_trial import Trial, trial_of
from pegboard.habits import HALF_LIFE, TRIAL, Habit, HabitKey, bounded
from pegboard.model import Floats, ToolId
from pegboard.protocols import Clock, Habits
from pegboard.write_batch import write_batch

LOGGER = logging.getLogger(__name__)

FLUSH_SECONDS = 5.0
REFRESH_SECONDS = 60.0
"""Seconds after which habits are read again: other processes add to them, and `pegboard state forget` removes them."""
MOST_KEYS = 200
"""Keys whose habits are kept in memory; the store knows more."""
MOST_LEFT = 20_000
"""Rows of other keys that wait for the store; beyond these, the keys that left first are not learnt from."""
MOST_ROWS = 2_000
"""Most tools of one key that are used: those that were added to last."""


@dataclass(slots=True, kw_only=True)
class KeyHabits:
    """The habits of one key: the sums by row that are ``stored``, and those that the store has not been told.

    ``read_at`` is when the store was read, in seconds of the monotonic clock. A key of the ``control`` group is never
    taught, only measured.
    """

    control: bool = False
    stored: dict[ToolId, Floats] = field(default_factory=dict)
    new: dict[ToolId, Floats] = field(default_factory=dict)
    read_at: float | None = None
    _vectors: dict[ToolId, Floats] | None = None
    _trial: Trial | None = None

    def adopt(self, stored: dict[ToolId, Floats], at: float) -> None:
        """Take over what the store has."""
        self.stored, self.read_at, self._vectors, self._trial = stored, at, None, None

    def add(self, row: ToolId, sums: Floats) -> None:
        before = self.new.get(row)
        self.new[row] = sums if before is None or before.shape != sums.shape else before + sums
        whole = self.sums(row)
        if row.server == TRIAL:
            self._trial = None
        elif self._vectors is not None and whole is not None:
            self._vectors[row] = bounded(whole)

    def sums(self, row: ToolId) -> Floats | None:
        """The sums of a row, stored and new; None without any."""
        stored, new = self.stored.get(row), self.new.get(row)
        if stored is None or new is None or stored.shape != new.shape:
            return stored if new is None else new
        return np.asarray(stored + new, np.float32)

    def vectors(self) -> dict[ToolId, Floats]:
        """The vectors of the tools, each at most `habits.LONGEST` long."""
        if self._vectors is None:
            rows = {row: self.sums(row) for row in {**self.stored, **self.new} if row.server != TRIAL}
            self._vectors = {row: bounded(sums) for row, sums in rows.items() if sums is not None}
        return self._vectors

    @property
    def trial(self) -> Trial:
        """The current epoch of the trial."""
        if self._trial is None:
            rows = {row.name: self.sums(row) for row in {**self.stored, **self.new} if row.server == TRIAL}
            self._trial = trial_of({name: sums for name, sums in rows.items() if sums is not None})
        return self._trial

    def observe(self, sums: Floats) -> None:
        """Count a call in the trial, and begin the next epoch if that ends this one."""
        self.add(ToolId(TRIAL, self.trial.row), sums)
        following = self.trial.next()
        if following is not None:
            self.add(ToolId(TRIAL, following.row), following.sums)

    @property
    def is_used(self) -> bool:
        """Whether the taught order is used."""
        return not self.control and self.trial.is_used


class HabitBook:
    """The habits of the keys that were used last, synchronized with a store."""

    def __init__(
        self, clock: Clock, store: Habits | None = None, *, control: float = 0.0, half_life: float = HALF_LIFE
    ) -> None:
        """``control`` is the share of keys of the control group; which those are depends on the key alone."""
        self._clock = clock
        self._store = store
        self._control = control
        self._half_life = half_life
        self._known: OrderedDict[str, KeyHabits] = OrderedDict()
        self._left: OrderedDict[str, KeyHabits] = OrderedDict()
        """What the store has not been told of keys that are not kept any more."""
        self._rows_left = 0

    def of(self, key: str) -> KeyHabits:
        """The habits of a key. With a store, an unknown key has none until the next synchronization."""
        if key not in self._known:
            left = self._left.pop(key, None)
            self._rows_left -= 0 if left is None else len(left.new)
            self._known[key] = KeyHabits(control=is_control(key, self._control), new={} if left is None else left.new)
        self._known.move_to_end(key)
        while len(self._known) > MOST_KEYS:
            first, known = self._known.popitem(last=False)
            self._leave(first, known.new)
        return self._known[key]

    @asynccontextmanager
    async def shared(self) -> AsyncIterator[HabitBook]:
        """Synchronize with the store every few seconds within this context, and once at its end."""
        running = asyncio.create_task(self.run())
        try:
            yield self
        finally:
            running.cancel()
            await asyncio.wait([running])
            await self.flush()

    async def run(self) -> None:
        """Synchronize every few seconds, until cancelled."""
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            try:
                await self.flush()
            except Exception:
                LOGGER.exception("Habits could not be synchronized")

    async def flush(self) -> None:
        """Synchronize with the store; whatever fails is tried again next time."""
        store = self._store
        if store is None:
            return
        now = self._clock.monotonic()
        new = [(key, each.new) for each_of in (self._left, self._known) for key, each in each_of.items() if each.new]
        told = [(HabitKey(key, *row), sums) for key, rows in new for row, sums in rows.items()]
        due = sorted(
            key
            for key, known in self._known.items()
            if known.new or known.read_at is None or now - known.read_at >= REFRESH_SECONDS
        )
        self._left.clear()
        self._rows_left = 0
        for known in self._known.values():
            known.new = {}
        found: dict[HabitKey, Habit] = {}

        async def read(keys: list[str]) -> None:
            found.update(await store.read(keys))

        try:
            if refused := await write_batch(told, lambda some: store.add(dict(some))):
                LOGGER.warning("%d habits could not be stored: the store refuses their names", len(refused))
            await write_batch([*due], read)
        except PegboardError as error:
            LOGGER.debug("Habits could not be synchronized: %s", error)
            return
        finally:
            for row, sums in told:
                self._take_back(row.key, {row.tool: sums})
        await self._adopt(due, found, now)

    async def _adopt(self, due: Collection[str], found: Mapping[HabitKey, Habit], now: float) -> None:
        """Take over what the store has of the keys that are ``due``; requests go on between two of them."""
        rows: defaultdict[str, list[HabitKey]] = defaultdict(list)
        for row in found:
            rows[row.key].append(row)
        time = self._clock.time()
        for key in due:
            latest = sorted(rows[key], key=lambda row: -found[row].used)
            kept = [row for place, row in enumerate(latest) if place < MOST_ROWS or row.server == TRIAL]
            if (known := self._known.get(key)) is not None:
                known.adopt({row.tool: found[row].faded(time, self._half_life) for row in kept}, now)
            await asyncio.sleep(0)

    def _take_back(self, key: str, new: Mapping[ToolId, Floats]) -> None:
        """The store was not told: next time."""
        known = self._known.get(key)
        if known is None:
            self._leave(key, new)
            return
        for row, sums in new.items():
            known.add(row, sums)

    def _leave(self, key: str, new: Mapping[ToolId, Floats]) -> None:
        """Keep what the store has not been told of a key, if there is a store."""
        if self._store is None or not new:
            return
        left = self._left.setdefault(key, KeyHabits())
        self._rows_left -= len(left.new)
        for row, sums in new.items():
            left.add(row, sums)
        self._rows_left += len(left.new)
        while self._rows_left > MOST_LEFT:
            self._rows_left -= len(self._left.popitem(last=False)[1].new)


def is_control(key: str, share: float) -> bool:
    """Whether a key belongs to the control group.

    >>> is_control("ada", 0.0), is_control("ada", 1.0)
    (False, True)
    """
    number = int.from_bytes(hashlib.sha256(f"control {key}".encode()).digest()[:4], "big")
    return number < share * 2**32
