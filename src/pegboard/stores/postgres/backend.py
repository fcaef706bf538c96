"""Opens the stores in PostgreSQL from the settings."""

from __future__ import annotations

from pegboard.protocols import Clock
from pegboard.settings import Settings
from pegboard.stores.backend import AddressedBackend, Backend, store_breaker
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


def open_postgres(url: str, settings: Settings, clock: Clock) -> Backend:
    chosen, averages = settings.state, settings.statistics
    database = PostgresDatabase(
        url,
        schema=chosen.prefix,
        connections=chosen.connections,
        timeout=chosen.timeout,
        breaker=store_breaker(clock, rest=chosen.rest),
    )
    return Backend(
        sessions=PostgresSessions(database, clock, ttl=settings.session_ttl),
        signing_keys=PostgresSigningKeys(database),
        statistics=PostgresStatistics(database, prior=averages.start, smoothing=averages.weights, clock=clock),
        lessons=PostgresLessons(database, clock=clock),
        habits=PostgresHabits(database, half_life=settings.usage.half_life_seconds, clock=clock),
        spend=PostgresSpend(database, clock),
        rates=PostgresRates(database, clock),
        results=PostgresResults(database, clock),
        audit=PostgresAudit(database, key=settings.audit_log.key_here),
        pins=PostgresPins(database),
        embeddings=PostgresEmbeddings(database, clock=clock),
        replicas=PostgresReplicas(database, clock),
        activity=PostgresActivity(database),
        archive=PostgresArchive(database, clock),
        close=database.close,
    )


BACKEND = AddressedBackend(
    schemes=("postgres", "postgresql"), address="postgresql://USER@HOST:PORT/DATABASE", open=open_postgres
)
