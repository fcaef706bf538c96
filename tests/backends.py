"""Every backend behind one interface, so that one suite of tests covers all of them. Each has its own data.

A new backend is one more class here: all of tests/stores/contract then runs over it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from itertools import cycle
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import pytest

from pegboard.averages import PRIOR, SMOOTHING
from pegboard.model import Smoothing
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
from pegboard.stores import (
    MemoryActivity,
    MemoryAudit,
    MemoryEmbeddings,
    MemoryHabits,
    MemoryLessons,
    MemoryPins,
    MemoryRates,
    MemoryReplicas,
    MemoryResults,
    MemorySessions,
    MemorySigningKeys,
    MemorySpend,
    MemoryStatistics,
    SqliteActivity,
    SqliteArchive,
    SqliteAudit,
    SqliteEmbeddings,
    SqliteHabits,
    SqliteLessons,
    SqlitePins,
    SqliteRates,
    SqliteResults,
    SqliteSessions,
    SqliteSigningKeys,
    SqliteSpend,
    SqliteStatistics,
)
from pegboard.stores.postgres import (
    PostgresActivity,
    PostgresArchive,
    PostgresAudit,
    PostgresDatabase,
    PostgresEmbeddings,
    PostgresHabits,
    PostgresLessons,
    PostgresPins,
    PostgresRates,
    PostgresReplicas,
    PostgresResults,
    PostgresSessions,
    PostgresSigningKeys,
    PostgresSpend,
    PostgresStatistics,
)
from pegboard.stores.redis import (
    RedisArchive,
    RedisAudit,
    RedisEmbeddings,
    RedisHabits,
    RedisLessons,
    RedisPins,
    RedisRates,
    RedisReplicas,
    RedisResults,
    RedisServer,
    RedisSessions,
    RedisSigningKeys,
    RedisSpend,
    RedisStatistics,
)
from services import POSTGRES, REDIS, delete_keys, drop_schema, needs_postgres, needs_redis

TTL = 60.0
"""Seconds that a session lasts."""
HOLD = 30.0
"""Seconds that money is held."""


class Backend(ABC):
    """Stores over the same data; each call makes one as another process would. ``folder`` is empty, for files."""

    name: ClassVar[str]
    keeps_activity: ClassVar = True
    lasts: ClassVar = True
    """Whether it outlives a process, so that it has an archive."""
    shared: ClassVar = True
    """Whether it tracks which processes serve together."""
    forgets: ClassVar = False
    """Whether it expires sessions and embeddings by its own clock."""
    marks: ClassVar[tuple[pytest.MarkDecorator, ...]] = ()

    def __init__(self, clock: Clock, folder: Path) -> None:
        self.clock = clock
        self.folder = folder

    @abstractmethod
    def sessions(self) -> Sessions: ...

    @abstractmethod
    def statistics(self, smoothing: Smoothing = SMOOTHING) -> Statistics: ...

    @abstractmethod
    def lessons(self) -> Lessons: ...

    @abstractmethod
    def habits(self) -> Habits: ...

    @abstractmethod
    def spend(self) -> Spend: ...

    @abstractmethod
    def rates(self) -> Rates: ...

    @abstractmethod
    def results(self) -> KeptResults: ...

    @abstractmethod
    def audit(self, key: bytes = b"") -> AuditLines: ...

    def activity(self) -> Activity:
        """Only for backends that keep it."""
        raise NotImplementedError

    @abstractmethod
    def embeddings(self) -> Embeddings: ...

    @abstractmethod
    def pins(self) -> Pins: ...

    @abstractmethod
    def replicas(self) -> Replicas: ...

    @abstractmethod
    def signing_keys(self) -> SigningKeys: ...

    def archive(self) -> Archive:
        """Only for backends that outlive a process."""
        raise NotImplementedError

    @abstractmethod
    async def close(self) -> None:
        """Close what was opened, and leave nothing behind."""


class InMemory(Backend):
    """One process: the same store each time."""

    name = "memory"
    lasts = False

    def __init__(self, clock: Clock, folder: Path) -> None:
        super().__init__(clock, folder)
        self._made: dict[str, Any] = {}

    def sessions(self) -> Sessions:
        return self._once("sessions", lambda: MemorySessions(self.clock, ttl=TTL))

    def statistics(self, smoothing: Smoothing = SMOOTHING) -> Statistics:
        return self._once("statistics", lambda: MemoryStatistics(prior=PRIOR, smoothing=smoothing))

    def lessons(self) -> Lessons:
        return self._once("lessons", MemoryLessons)

    def habits(self) -> Habits:
        return self._once("habits", lambda: MemoryHabits(clock=self.clock))

    def spend(self) -> Spend:
        return self._once("spend", lambda: MemorySpend(self.clock, hold=HOLD))

    def rates(self) -> Rates:
        return self._once("rates", lambda: MemoryRates(self.clock))

    def results(self) -> KeptResults:
        return self._once("results", lambda: MemoryResults(self.clock))

    def audit(self, key: bytes = b"") -> AuditLines:
        return self._once("audit", lambda: MemoryAudit(key=key))

    def activity(self) -> Activity:
        return self._once("activity", MemoryActivity)

    def embeddings(self) -> Embeddings:
        return self._once("embeddings", MemoryEmbeddings)

    def pins(self) -> Pins:
        return self._once("pins", MemoryPins)

    def replicas(self) -> Replicas:
        return self._once("replicas", lambda: MemoryReplicas(self.clock))

    def signing_keys(self) -> SigningKeys:
        return self._once("signing keys", MemorySigningKeys)

    async def close(self) -> None:
        self._made.clear()

    def _once(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]


class InSqlite(Backend):
    name = "sqlite"
    shared = False

    def __init__(self, clock: Clock, folder: Path) -> None:
        super().__init__(clock, folder)
        self._state = folder / "state.sqlite"
        self._cache = folder / "cache.sqlite"
        self._made: list[Any] = []

    def sessions(self) -> Sessions:
        return self._opened(SqliteSessions(self._state, self.clock, ttl=TTL))

    def statistics(self, smoothing: Smoothing = SMOOTHING) -> Statistics:
        return self._opened(SqliteStatistics(self._state, smoothing=smoothing, clock=self.clock))

    def lessons(self) -> Lessons:
        return self._opened(SqliteLessons(self._state, clock=self.clock))

    def habits(self) -> Habits:
        return self._opened(SqliteHabits(self._state, clock=self.clock))

    def spend(self) -> Spend:
        return self._opened(SqliteSpend(self._state, self.clock, hold=HOLD))

    def rates(self) -> Rates:
        return self._opened(SqliteRates(self._state, self.clock))

    def results(self) -> KeptResults:
        return self._opened(SqliteResults(self._state.with_name("results.sqlite"), self.clock))

    def audit(self, key: bytes = b"") -> AuditLines:
        return self._opened(SqliteAudit(self._state.with_name("audit.sqlite"), key=key))

    def activity(self) -> Activity:
        return self._opened(SqliteActivity(self._state.with_name("activity.sqlite")))

    def embeddings(self) -> Embeddings:
        return self._opened(SqliteEmbeddings(self._cache, clock=self.clock))

    def pins(self) -> Pins:
        return self._opened(SqlitePins(self._state))

    def replicas(self) -> Replicas:
        raise NotImplementedError

    def signing_keys(self) -> SigningKeys:
        return self._opened(SqliteSigningKeys(self._state.with_name("signing.sqlite")))

    def archive(self) -> Archive:
        return self._opened(SqliteArchive(self._state, self._cache, self.clock))

    async def close(self) -> None:
        for store in self._made:
            store.close()

    def _opened(self, store: Any) -> Any:
        self._made.append(store)
        return store


class InRedis(Backend):
    """Two connections to the server, in turn, under its own prefix."""

    name = "redis"
    keeps_activity = False
    forgets = True
    marks = (needs_redis,)

    def __init__(self, clock: Clock, folder: Path) -> None:
        super().__init__(clock, folder)
        self.prefix = f"test {uuid4().hex}"
        self._servers = cycle([RedisServer(REDIS, prefix=self.prefix, timeout=30) for _ in range(2)])

    def sessions(self) -> Sessions:
        return RedisSessions(next(self._servers), self.clock, ttl=TTL)

    def statistics(self, smoothing: Smoothing = SMOOTHING) -> Statistics:
        return RedisStatistics(next(self._servers), smoothing=smoothing, clock=self.clock)

    def lessons(self) -> Lessons:
        return RedisLessons(next(self._servers), clock=self.clock)

    def habits(self) -> Habits:
        return RedisHabits(next(self._servers), clock=self.clock)

    def spend(self) -> Spend:
        return RedisSpend(next(self._servers), self.clock, hold=HOLD)

    def rates(self) -> Rates:
        return RedisRates(next(self._servers), self.clock)

    def results(self) -> KeptResults:
        return RedisResults(next(self._servers), self.clock)

    def audit(self, key: bytes = b"") -> AuditLines:
        return RedisAudit(next(self._servers), key=key)

    def embeddings(self) -> Embeddings:
        return RedisEmbeddings(next(self._servers))

    def pins(self) -> Pins:
        return RedisPins(next(self._servers))

    def replicas(self) -> Replicas:
        return RedisReplicas(next(self._servers), self.clock)

    def signing_keys(self) -> SigningKeys:
        return RedisSigningKeys(next(self._servers))

    def archive(self) -> Archive:
        return RedisArchive(next(self._servers), self.clock)

    async def close(self) -> None:
        await delete_keys(self.prefix)
        for _ in range(2):
            await next(self._servers).close()


class InPostgres(Backend):
    """Two connection pools, in turn, to its own schema."""

    name = "postgres"
    marks = (needs_postgres,)

    def __init__(self, clock: Clock, folder: Path) -> None:
        super().__init__(clock, folder)
        self.schema = f"test_{uuid4().hex}"
        self._databases = cycle([PostgresDatabase(POSTGRES, schema=self.schema, timeout=30) for _ in range(2)])

    def sessions(self) -> Sessions:
        return PostgresSessions(next(self._databases), self.clock, ttl=TTL)

    def statistics(self, smoothing: Smoothing = SMOOTHING) -> Statistics:
        return PostgresStatistics(next(self._databases), smoothing=smoothing, clock=self.clock)

    def lessons(self) -> Lessons:
        return PostgresLessons(next(self._databases), clock=self.clock)

    def habits(self) -> Habits:
        return PostgresHabits(next(self._databases), clock=self.clock)

    def spend(self) -> Spend:
        return PostgresSpend(next(self._databases), self.clock, hold=HOLD)

    def rates(self) -> Rates:
        return PostgresRates(next(self._databases), self.clock)

    def results(self) -> KeptResults:
        return PostgresResults(next(self._databases), self.clock)

    def audit(self, key: bytes = b"") -> AuditLines:
        return PostgresAudit(next(self._databases), key=key)

    def activity(self) -> Activity:
        return PostgresActivity(next(self._databases))

    def embeddings(self) -> Embeddings:
        return PostgresEmbeddings(next(self._databases), clock=self.clock)

    def pins(self) -> Pins:
        return PostgresPins(next(self._databases))

    def replicas(self) -> Replicas:
        return PostgresReplicas(next(self._databases), self.clock)

    def signing_keys(self) -> SigningKeys:
        return PostgresSigningKeys(next(self._databases))

    def archive(self) -> Archive:
        return PostgresArchive(next(self._databases), self.clock)

    async def close(self) -> None:
        for _ in range(2):
            await next(self._databases).close()
        await drop_schema(self.schema)


BACKENDS: list[type[Backend]] = Backend.__subclasses__()
LASTING = [kind for kind in BACKENDS if kind.lasts]
Another = Callable[[type[Backend]], Awaitable[Backend]]
"""Makes an empty backend of a kind."""


def params(kinds: Iterable[type[Backend]]) -> list[Any]:
    """Parameters of a test that runs over each; those whose server does not answer are skipped."""
    return [pytest.param(kind, id=kind.name, marks=kind.marks) for kind in kinds]
