"""Spending and what is held back for calls under way: in memory, or in a file."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

from pegboard.errors import SpendLimitReached
from pegboard.seams import Clock
from pegboard.spending import Account, Limits, Meter, MeterKind, NanoUsd, Reservation, day_of, meters
from pegboard.stores.sqlite_file import OnFile, SqliteFile
from pegboard.stores.sqlite_state import REMEDY, STATE

HOLD = 600.0
"""Seconds after which money that was held back for a call is free again."""
LATE = 86_400.0
"""Seconds after that in which the call can still be settled."""

SPENT = "SELECT spent FROM spend_meters WHERE kind = ? AND name = ?"
HELD = "SELECT COALESCE(SUM(amount), 0) FROM spend_holds WHERE kind = ? AND name = ? AND expires > ?"
CHARGE = (
    "INSERT INTO spend_meters (kind, name, spent, used) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (kind, name) DO UPDATE SET spent = spent + excluded.spent, used = excluded.used"
)


def new_reservation(account: Account, amount: NanoUsd, now: float, hold: float) -> Reservation:
    """Raises ValueError for less than nothing."""
    check_amount(amount)
    return Reservation(id=uuid4().hex, account=account, amount=amount, day=day_of(now), expires=now + hold)


def check_amount(amount: NanoUsd) -> None:
    if amount < 0:
        raise ValueError(f"An amount of money cannot be negative: {amount}.")


def limit_of(limits: Limits, kind: MeterKind) -> NanoUsd | None:
    return {"session": limits.session, "key": limits.key, "day": limits.day}[kind]


def check_limits(used: Mapping[MeterKind, int], amount: NanoUsd, limits: Limits) -> None:
    """Raises SpendLimitReached where what is used (spent or held, by kind of meter) leaves no room for the amount."""
    for kind, sum_used in used.items():
        limit = limit_of(limits, kind)
        if limit is not None and sum_used + amount > limit:
            raise SpendLimitReached(kind, limit=limit, used=NanoUsd(sum_used), amount=amount)


class MemorySpend:
    def __init__(self, clock: Clock, *, hold: float = HOLD) -> None:
        self._clock = clock
        self._hold = hold
        self._spent: Counter[Meter] = Counter()
        self._held: dict[str, Reservation] = {}

    async def reserve(self, account: Account, amount: NanoUsd, limits: Limits) -> Reservation:
        now = self._clock.time()
        reservation = new_reservation(account, amount, now, self._hold)
        running = meters(account, reservation.day)
        used = Counter({meter: self._spent[meter] for meter in running})
        for each in self._held.values():
            if each.expires > now:
                used.update(dict.fromkeys(meters(each.account, each.day), each.amount))
        check_limits({meter.kind: used[meter] for meter in running}, amount, limits)
        self._held[reservation.id] = reservation
        return reservation

    async def settle(self, reservation: Reservation, actual: NanoUsd) -> None:
        check_amount(actual)
        if self._held.pop(reservation.id, None):
            self._spent.update(dict.fromkeys(meters(reservation.account, reservation.day), actual))

    async def expire(self) -> int:
        past = self._clock.time() - LATE
        forgotten = [each.id for each in self._held.values() if each.expires <= past]
        for key in forgotten:
            del self._held[key]
        return len(forgotten)


class SqliteSpend(OnFile):
    """Spending in one file, limited over all processes that share it."""

    def __init__(self, path: Path, clock: Clock, *, hold: float = HOLD) -> None:
        self._file = SqliteFile(path, STATE, remedy=REMEDY)
        self._clock = clock
        self._hold = hold

    async def reserve(self, account: Account, amount: NanoUsd, limits: Limits) -> Reservation:
        now = self._clock.time()
        reservation = new_reservation(account, amount, now, self._hold)
        running = meters(account, reservation.day)

        def hold(connection: sqlite3.Connection) -> None:
            check_limits({meter.kind: _used(connection, meter, now) for meter in running}, amount, limits)
            rows = [(*meter, reservation.id, amount, reservation.expires) for meter in running]
            connection.executemany("INSERT INTO spend_holds VALUES (?, ?, ?, ?, ?)", rows)

        await self._file.run_alone(hold)
        return reservation

    async def settle(self, reservation: Reservation, actual: NanoUsd) -> None:
        check_amount(actual)
        now = self._clock.time()
        rows = [(*meter, actual, used_at(meter, now)) for meter in meters(reservation.account, reservation.day)]

        def charge(connection: sqlite3.Connection) -> None:
            if connection.execute("DELETE FROM spend_holds WHERE reservation = ?", (reservation.id,)).rowcount:
                connection.executemany(CHARGE, rows)

        await self._file.run_alone(charge)

    async def expire(self) -> int:
        past = self._clock.time() - LATE

        def forget(connection: sqlite3.Connection) -> int:
            gone = connection.execute("DELETE FROM spend_holds WHERE expires <= ? RETURNING reservation", (past,))
            return len(set(gone.fetchall()))

        return await self._file.run_alone(forget)


def used_at(meter: Meter, now: float) -> float | None:
    """The stamp of a meter that runs. The total of a key has none and never grows old: its limit would begin anew."""
    return None if meter.kind == "key" else now


def _used(connection: sqlite3.Connection, meter: Meter, now: float) -> int:
    spent = connection.execute(SPENT, meter).fetchone()
    held = connection.execute(HELD, (*meter, now)).fetchone()
    return int(spent[0] if spent else 0) + int(held[0])
