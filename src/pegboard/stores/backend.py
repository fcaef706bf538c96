"""A backend: one store for each kind of state, all in one place."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from pegboard.circuit_breaker import Breaker
from pegboard.errors import StoreError
from pegboard.protocols import (
    Activity,
    Archive,
    AuditLines,
    Clock,
    Embeddings,
    Habits,
    KeptResults,
    Lessons,
    Pins,
    Rates,
    Replicas,
    Sessions,
    SigningKeys,
    Spend,
    Statistics,
)
from pegboard.settings import Settings

REST = 1.0
MEANWHILE = (
    "sessions, counts, pins and what was spent are as this process knows them, and calls under a spend limit are "
    "refused"
)
"""What happens while the store does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """The stores of one place. ``replicas`` is None if only one process can serve; ``archive`` covers all records.

    Connections and files open on first use; await ``close`` at the end.
    """

    sessions: Sessions
    signing_keys: SigningKeys
    statistics: Statistics
    lessons: Lessons
    habits: Habits
    spend: Spend
    rates: Rates
    results: KeptResults
    audit: AuditLines
    pins: Pins
    embeddings: Embeddings
    replicas: Replicas | None
    archive: Archive
    close: Callable[[], Awaitable[None]]
    activity: Activity | None = None
    """None if this backend keeps no activity."""
    amiss: Callable[[], str] = lambda: ""
    """What is wrong with the files on this machine, without paths; empty if nothing is known to be wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressedBackend:
    """A backend that an address selects: the URL schemes, an example address, and the function that opens it.

    The ``backend`` module of a backend's folder defines one as ``BACKEND``. ``open`` raises ConfigError for an address
    that is not valid.
    """

    schemes: tuple[str, ...]
    address: str
    open: Callable[[str, Settings, Clock], Backend]


def store_breaker(clock: Clock, *, rest: float = REST) -> Breaker[StoreError]:
    """A circuit breaker for a store, open for ``rest`` seconds after a failure."""
    return Breaker(clock, StoreError, name="The store", rest=rest, meanwhile=MEANWHILE)
