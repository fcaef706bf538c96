"""Everything that outlives a process, in the one place that the settings name."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pegboard.errors import ConfigError
from pegboard.seams import (
    Archive,
    Clock,
    Definitions,
    Embeddings,
    Lessons,
    Pins,
    Replicas,
    Sessions,
    SigningKeys,
    Spend,
    Statistics,
)
from pegboard.server_spec import Expander
from pegboard.settings import Settings
from pegboard.stores.breaker import Breaker
from pegboard.stores.definitions import SqliteDefinitions
from pegboard.stores.lessons import SqliteLessons
from pegboard.stores.pins import SqlitePins
from pegboard.stores.postgres import (
    PostgresArchive,
    PostgresDatabase,
    PostgresEmbeddings,
    PostgresLessons,
    PostgresPins,
    PostgresReplicas,
    PostgresSessions,
    PostgresSigningKeys,
    PostgresSpend,
    PostgresStatistics,
)
from pegboard.stores.redis import (
    RedisArchive,
    RedisEmbeddings,
    RedisLessons,
    RedisPins,
    RedisReplicas,
    RedisServer,
    RedisSessions,
    RedisSigningKeys,
    RedisSpend,
    RedisStatistics,
)
from pegboard.stores.retention import DAY, Retirement
from pegboard.stores.sessions import SqliteSessions
from pegboard.stores.signing_keys import SqliteSigningKeys
from pegboard.stores.spend import SqliteSpend
from pegboard.stores.sqlite import SqliteEmbeddings
from pegboard.stores.sqlite_archive import SqliteArchive
from pegboard.stores.sqlite_file import OnFile
from pegboard.stores.statistics import SqliteStatistics

DEFINITIONS_FILE = "definitions.sqlite"
EMBEDDINGS_FILE = "embeddings.sqlite"
SIGNING_FILE = "signing.sqlite"
STATE_FILE = "state.sqlite"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The stores of one configuration. ``replicas`` is None where no other process is meant to serve beside this one;
    ``archive`` has all of it but the definitions, which are a cache of this machine wherever the rest is.

    Nothing is opened before it is used; await ``close`` in the end.
    """

    sessions: Sessions
    signing_keys: SigningKeys
    statistics: Statistics
    lessons: Lessons
    spend: Spend
    pins: Pins
    embeddings: Embeddings
    replicas: Replicas | None
    definitions: Definitions
    archive: Archive
    retirement: Retirement
    amiss: Callable[[], str]
    """What is wrong with the files on this machine, for everybody to read; nothing, if nothing is known to be."""
    close: Callable[[], Awaitable[None]]


def open_state(settings: Settings, clock: Clock) -> State:
    """The stores that the settings name. Raises ConfigError for an address that is none."""
    if settings.state.url is None:
        return _files(settings, clock)
    url = Expander("The address of the state", os.environ, ".")(settings.state.url.get_secret_value()) or ""
    scheme = urlsplit(url).scheme
    if scheme not in STORES:
        raise ConfigError(
            f"State cannot be kept at an address that begins with {f'{scheme}:' if scheme else 'nothing'!r}.",
            remedy="Set state to redis://HOST:PORT/0 or postgresql://USER@HOST:PORT/DATABASE, or leave it out.",
        )
    return STORES[scheme](url, settings, clock)


def _files(settings: Settings, clock: Clock) -> State:
    state: Path = settings.state_dir / STATE_FILE
    sessions = SqliteSessions(state, clock, ttl=settings.session_ttl)
    averages, cached = settings.statistics, settings.cache_dir / EMBEDDINGS_FILE
    statistics = SqliteStatistics(state, prior=averages.start, smoothing=averages.weights, clock=clock)
    spend, pins, lessons = SqliteSpend(state, clock), SqlitePins(state), SqliteLessons(state, clock=clock)
    embeddings = SqliteEmbeddings(cached, clock=clock)
    signing_keys = SqliteSigningKeys(settings.state_dir / SIGNING_FILE)
    archive = SqliteArchive(state, cached, clock, prior=averages.start)
    definitions = _definitions(settings, clock)

    files: list[OnFile] = [sessions, statistics, lessons, spend, pins, embeddings, definitions, signing_keys]

    async def close() -> None:
        for each in files:
            each.close()
        archive.close()

    return State(
        sessions=sessions,
        signing_keys=signing_keys,
        statistics=statistics,
        lessons=lessons,
        spend=spend,
        pins=pins,
        embeddings=embeddings,
        replicas=None,
        definitions=definitions,
        archive=archive,
        retirement=Retirement(archive, definitions.forget_unused, settings.retention, clock),
        amiss=lambda: _first(files),
        close=close,
    )


def _redis(url: str, settings: Settings, clock: Clock) -> State:
    chosen = settings.state
    server = RedisServer(
        url,
        prefix=chosen.prefix,
        connections=chosen.connections,
        timeout=chosen.timeout,
        breaker=Breaker(clock, rest=chosen.rest),
    )
    averages, days = settings.statistics, settings.retention.embeddings
    ttl = days * DAY if days else None
    archive, definitions = RedisArchive(server, clock, embeddings_ttl=ttl), _definitions(settings, clock)

    async def close() -> None:
        definitions.close()
        await server.close()

    return State(
        sessions=RedisSessions(server, clock, ttl=settings.session_ttl),
        signing_keys=RedisSigningKeys(server),
        statistics=RedisStatistics(server, prior=averages.start, smoothing=averages.weights, clock=clock),
        lessons=RedisLessons(server, clock=clock),
        spend=RedisSpend(server, clock),
        pins=RedisPins(server),
        embeddings=RedisEmbeddings(server, ttl=ttl),
        replicas=RedisReplicas(server, clock),
        definitions=definitions,
        archive=archive,
        retirement=Retirement(archive, definitions.forget_unused, settings.retention, clock),
        amiss=lambda: definitions.amiss,
        close=close,
    )


def _postgres(url: str, settings: Settings, clock: Clock) -> State:
    chosen = settings.state
    database = PostgresDatabase(
        url,
        schema=chosen.prefix,
        connections=chosen.connections,
        timeout=chosen.timeout,
        breaker=Breaker(clock, rest=chosen.rest),
    )
    averages = settings.statistics
    archive, definitions = PostgresArchive(database, clock), _definitions(settings, clock)

    async def close() -> None:
        definitions.close()
        await database.close()

    return State(
        sessions=PostgresSessions(database, clock, ttl=settings.session_ttl),
        signing_keys=PostgresSigningKeys(database),
        statistics=PostgresStatistics(database, prior=averages.start, smoothing=averages.weights, clock=clock),
        lessons=PostgresLessons(database, clock=clock),
        spend=PostgresSpend(database, clock),
        pins=PostgresPins(database),
        embeddings=PostgresEmbeddings(database, clock=clock),
        replicas=PostgresReplicas(database, clock),
        definitions=definitions,
        archive=archive,
        retirement=Retirement(archive, definitions.forget_unused, settings.retention, clock),
        amiss=lambda: definitions.amiss,
        close=close,
    )


def _first(files: Sequence[OnFile]) -> str:
    return next((each.amiss for each in files if each.amiss), "")


def _definitions(settings: Settings, clock: Clock) -> SqliteDefinitions:
    return SqliteDefinitions(settings.cache_dir / DEFINITIONS_FILE, clock=clock)


STORES: dict[str, Callable[[str, Settings, Clock], State]] = {
    "redis": _redis,
    "rediss": _redis,
    "postgres": _postgres,
    "postgresql": _postgres,
}
"""By the scheme of the address."""
