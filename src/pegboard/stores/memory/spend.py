"""Money spent, and money held for calls in progress, in memory."""

from __future__ import annotations

from collections import Counter

from pegboard.protocols import Clock
from pegboard.spend_limits import Account, Limits, Meter, NanoUsd, Reservation, meters
from pegboard.stores.retention import HOLD, LATE
from pegboard.stores.spend import check_amount, check_limits, new_reservation


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
