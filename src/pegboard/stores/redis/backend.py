"""Opens the stores on Redis from the settings."""

from __future__ import annotations

from pegboard.protocols import Clock
from pegboard.settings import Settings
from pegboard.stores.backend import AddressedBackend, Backend, store_breaker
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
from pegboard.stores.retention import DAY


def open_redis(url: str, settings: Settings, clock: Clock) -> Backend:
    chosen = settings.state
    server = RedisServer(
        url,
        prefix=chosen.prefix,
        connections=chosen.connections,
        timeout=chosen.timeout,
        breaker=store_breaker(clock, rest=chosen.rest),
    )
    averages, days = settings.statistics, settings.retention.embeddings
    ttl = days * DAY if days else None
    return Backend(
        sessions=RedisSessions(server, clock, ttl=settings.session_ttl),
        signing_keys=RedisSigningKeys(server),
        statistics=RedisStatistics(server, prior=averages.start, smoothing=averages.weights, clock=clock),
        lessons=RedisLessons(server, clock=clock),
        habits=RedisHabits(server, half_life=settings.usage.half_life_seconds, clock=clock),
        spend=RedisSpend(server, clock),
        rates=RedisRates(server, clock),
        results=RedisResults(server, clock),
        audit=RedisAudit(server, key=settings.audit_log.key_here),
        pins=RedisPins(server),
        embeddings=RedisEmbeddings(server, ttl=ttl),
        replicas=RedisReplicas(server, clock),
        archive=RedisArchive(server, clock, embeddings_ttl=ttl),
        close=server.close,
    )


BACKEND = AddressedBackend(schemes=("redis", "rediss"), address="redis://HOST:PORT/0", open=open_redis)
