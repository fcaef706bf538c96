"""What calls may cost: amounts, accounts, and spending limits."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import ROUND_CEILING, Decimal
from typing import Literal, NamedTuple, NewType

NanoUsd = NewType("NanoUsd", int)
"""Billionths of a US dollar: integers, so that sums are exact. Stores count exactly up to 9 million dollars."""

BUDGET = "budget "
"""Begins the key of the account of a budget: what is charged to it is charged to the account of everybody too."""

MeterKind = Literal["session", "key", "day"]


def nano_usd(usd: Decimal | float | str) -> NanoUsd:
    """An amount of US dollars, rounded up.

    >>> nano_usd(0.1) + nano_usd(0.2) == nano_usd(0.3)
    True
    """
    return NanoUsd(int((Decimal(str(usd)) * 10**9).to_integral_value(ROUND_CEILING)))


def dollars(amount: NanoUsd) -> str:
    """The amount as text.

    >>> dollars(nano_usd("1.25"))
    '$1.25'
    """
    return f"${Decimal(amount).scaleb(-9).normalize():f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Who pays. ``key`` is the name of the caller's key, never the key itself; ``session`` is one of its sessions."""

    session: str
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What may be spent in one session, with one key, and with one key on one day (UTC). None means no limit."""

    session: NanoUsd | None = None
    key: NanoUsd | None = None
    day: NanoUsd | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Money reserved for a call until it is settled, or until ``expires`` (seconds since the epoch)."""

    id: str
    account: Account
    amount: NanoUsd
    day: str
    expires: float


class Meter(NamedTuple):
    """A running total of spending."""

    kind: MeterKind
    name: str


def meters(account: Account, day: str) -> tuple[Meter, ...]:
    """The three meters that a call of this account adds to, always in this order."""
    return (
        Meter("session", json.dumps([account.key, account.session])),
        Meter("key", account.key),
        Meter("day", f"{day} {account.key}"),
    )


def day_of(seconds: float) -> str:
    """The UTC day of a moment (seconds since the epoch).

    >>> day_of(86_399.5), day_of(86_400)
    ('1970-01-01', '1970-01-02')
    """
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()
