"""Money spent, and money held for calls in progress, in the state file."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from pegboard.protocols import Clock
from pegboard.spend_limits import Account, Limits, Meter, NanoUsd, Reservation, meters
from pegboard.stores.retention import HOLD, LATE
from pegboard.stores.spend import check_amount, check_limits, new_reservation, used_at
from pegboard.stores.sqlite.database import REMEDY, STATE_MIGRATIONS, FileStore, SqliteFile

SPENT = "SELECT spent FROM spend_meters WHERE kind = ? AND name = ?"
HELD = "SELECT COALESCE(SUM(amount), 0) FROM spend_holds WHERE kind = ? AND name = ? AND expires > ?"
CHARGE = (
    "INSERT INTO spend_meters (kind, name, spent, used) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (kind, name) DO UPDATE SET spent = spent + excluded.spent, used = excluded.used"
)


class SqliteSpend(FileStore):
    """Spend in one file, limited across all processes that use it."""

    def __init__(self, path: Path, clock: Clock, *, hold: float = HOLD) -> None:
        self._file = SqliteFile(path, STATE_MIGRATIONS, remedy=REMEDY)
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


def _used(connection: sqlite3.Connection, meter: Meter, now: float) -> int:
    spent = connection.execute(SPENT, meter).fetchone()
    held = connection.execute(HELD, (*meter, now)).fetchone()
    return int(spent[0] if spent else 0) + int(held[0])
