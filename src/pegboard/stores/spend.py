"""The checks of every backend before it holds or charges money."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import uuid4

from pegboard.errors import SpendLimitReached
from pegboard.spend_limits import Account, Limits, Meter, MeterKind, NanoUsd, Reservation, day_of


def new_reservation(account: Account, amount: NanoUsd, now: float, hold: float) -> Reservation:
    """A reservation that ends in ``hold`` seconds. Raises ValueError for a negative amount."""
    check_amount(amount)
    return Reservation(id=uuid4().hex, account=account, amount=amount, day=day_of(now), expires=now + hold)


def check_amount(amount: NanoUsd) -> None:
    if amount < 0:
        raise ValueError(f"An amount of money cannot be negative: {amount}.")


def limit_of(limits: Limits, kind: MeterKind) -> NanoUsd | None:
    return {"session": limits.session, "key": limits.key, "day": limits.day}[kind]


def check_limits(used: Mapping[MeterKind, int], amount: NanoUsd, limits: Limits) -> None:
    """Raises SpendLimitReached if the amount would exceed a limit; ``used`` is spent and held, by kind of meter."""
    for kind, sum_used in used.items():
        limit = limit_of(limits, kind)
        if limit is not None and sum_used + amount > limit:
            raise SpendLimitReached(kind, limit=limit, used=NanoUsd(sum_used), amount=amount)


def used_at(meter: Meter, now: float) -> float | None:
    """When a meter was last used; None for the total of a key, which never expires: its limit would start over."""
    return None if meter.kind == "key" else now
