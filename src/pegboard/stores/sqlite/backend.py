"""Opens the stores in files on this machine from the settings."""

from __future__ import annotations

from pegboard.protocols import Clock
from pegboard.settings import Settings
from pegboard.stores.backend import Backend
from pegboard.stores.sqlite import (
    FileStore,
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

ACTIVITY_FILE = "activity.sqlite"
AUDIT_FILE = "audit.sqlite"
EMBEDDINGS_FILE = "embeddings.sqlite"
RESULTS_FILE = "results.sqlite"
SIGNING_FILE = "signing.sqlite"
STATE_FILE = "state.sqlite"


def open_sqlite(settings: Settings, clock: Clock) -> Backend:
    """Stores in files of ``state_dir`` and ``cache_dir``."""
    state, cached = settings.state_dir / STATE_FILE, settings.cache_dir / EMBEDDINGS_FILE
    averages = settings.statistics
    sessions = SqliteSessions(state, clock, ttl=settings.session_ttl)
    statistics = SqliteStatistics(state, prior=averages.start, smoothing=averages.weights, clock=clock)
    spend, pins, lessons = SqliteSpend(state, clock), SqlitePins(state), SqliteLessons(state, clock=clock)
    habits = SqliteHabits(state, half_life=settings.usage.half_life_seconds, clock=clock)
    embeddings = SqliteEmbeddings(cached, clock=clock)
    signing_keys = SqliteSigningKeys(settings.state_dir / SIGNING_FILE)
    rates = SqliteRates(state, clock)
    results = SqliteResults(settings.state_dir / RESULTS_FILE, clock)
    audit = SqliteAudit(settings.state_dir / AUDIT_FILE, key=settings.audit_log.key_here)
    activity = SqliteActivity(settings.state_dir / ACTIVITY_FILE)
    archive = SqliteArchive(state, cached, clock, prior=averages.start)
    files: list[FileStore] = [
        sessions,
        statistics,
        lessons,
        habits,
        spend,
        pins,
        embeddings,
        signing_keys,
        rates,
        results,
        audit,
        activity,
    ]

    async def close() -> None:
        for each in files:
            each.close()
        archive.close()

    return Backend(
        sessions=sessions,
        signing_keys=signing_keys,
        statistics=statistics,
        lessons=lessons,
        habits=habits,
        spend=spend,
        rates=rates,
        results=results,
        audit=audit,
        pins=pins,
        embeddings=embeddings,
        replicas=None,
        activity=activity,
        archive=archive,
        close=close,
        amiss=lambda: next((each.amiss for each in files if each.amiss), ""),
    )
