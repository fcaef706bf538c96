"""Spend in PostgreSQL: the rows of a call's three meters are locked while it is reserved or charged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from pegboard.protocols import Clock
from pegboard.spend_limits import Account, Limits, Meter, MeterKind, NanoUsd, Reservation, meters
from pegboard.stores.postgres.database import PostgresDatabase, execute_each, fetch
from pegboard.stores.retention import HOLD, LATE
from pegboard.stores.spend import check_amount, check_limits, new_reservation, used_at

BEGIN = "INSERT INTO spend_meters (kind, name, spent, used) VALUES (%s, %s, 0, %s) ON CONFLICT DO NOTHING"
LOCK = (
    "SELECT kind, spent FROM spend_meters WHERE (kind, name) IN (SELECT * FROM unnest(%s::text[], %s::text[])) "
    'ORDER BY kind COLLATE "C", name COLLATE "C" FOR UPDATE'
)
HELD = (
    "SELECT kind, sum(amount) FROM spend_holds "
    "WHERE (kind, name) IN (SELECT * FROM unnest(%s::text[], %s::text[])) AND expires > %s GROUP BY kind"
)
HOLD_BACK = "INSERT INTO spend_holds (kind, name, reservation, amount, expires) VALUES (%s, %s, %s, %s, %s)"
RELEASE = "DELETE FROM spend_holds WHERE reservation = %s"
CHARGE = "UPDATE spend_meters SET spent = spent + %s, used = %s WHERE kind = %s AND name = %s"
FORGET = (
    "DELETE FROM spend_holds WHERE (kind, name, reservation) IN "
    "(SELECT kind, name, reservation FROM spend_holds WHERE expires <= %s FOR UPDATE SKIP LOCKED) RETURNING reservation"
)


class PostgresSpend:
    def __init__(self, database: PostgresDatabase, clock: Clock, *, hold: float = HOLD) -> None:
        self._database = database
        self._clock = clock
        self._hold = hold

    async def reserve(self, account: Account, amount: NanoUsd, limits: Limits) -> Reservation:
        now = self._clock.time()
        reservation = new_reservation(account, amount, now, self._hold)
        running = sorted(meters(account, reservation.day))

        async def hold(connection: Any) -> None:
            check_limits(await _used(connection, running, now), amount, limits)
            rows = [(*meter, reservation.id, amount, reservation.expires) for meter in running]
            await execute_each(connection, HOLD_BACK, rows)

        await self._database.run(hold)
        return reservation

    async def settle(self, reservation: Reservation, actual: NanoUsd) -> None:
        check_amount(actual)
        running, now = sorted(meters(reservation.account, reservation.day)), self._clock.time()

        async def charge(connection: Any) -> None:
            if (await connection.execute(RELEASE, (reservation.id,))).rowcount:
                await execute_each(connection, CHARGE, [(actual, used_at(meter, now), *meter) for meter in running])

        await self._database.run(charge)

    async def expire(self) -> int:
        past = self._clock.time() - LATE
        gone = await self._database.run(lambda connection: fetch(connection, FORGET, (past,)))
        return len(set(gone))


async def _used(connection: Any, running: Sequence[Meter], now: float) -> Counter[MeterKind]:
    """Money spent and held on each meter. Locks the meters in a fixed order, so that two calls cannot deadlock."""
    kinds, names = map(list, zip(*running, strict=True))
    await execute_each(connection, BEGIN, [(*meter, used_at(meter, now)) for meter in running])
    used = Counter[MeterKind](dict(await fetch(connection, LOCK, (kinds, names))))
    used.update({kind: int(held) for kind, held in await fetch(connection, HELD, (kinds, names, now))})
    return used
