"""The parts that every board needs: encoder, stores, events, clock."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from pegboard.clock import SystemClock
from pegboard.compose.vectors import IndexOf, configured_encoder, in_process, indexes
from pegboard.protocols import (
    Activity,
    Archive,
    Clock,
    Definitions,
    Embeddings,
    Encoder,
    EventSink,
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
from pegboard.routing.economics import Knowledge
from pegboard.routing.habit_book import HabitBook
from pegboard.routing.habit_learner import HabitLearner
from pegboard.routing.server_breakers import ServerBreakers
from pegboard.settings import Settings
from pegboard.stores import MemoryEvents
from pegboard.stores.retention import RetentionJob
from pegboard.stores.state import open_state
from pegboard.stores.vector_shards import ShardEmbeddings, VectorSpace
from pegboard.telemetry.audit_log import AuditLog
from pegboard.telemetry.event_log import FanOut, LogEvents
from pegboard.telemetry.trace_spans import Tracer


@runtime_checkable
class Closes(Protocol):
    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a board needs besides its catalog and settings; each part may be replaced. Call `close` at the end.

    ``fallback`` encodes while ``encoder`` does not answer; if it is None, tools are then ranked by words.
    """

    encoder: Encoder
    fallback: Encoder | None
    embeddings: Embeddings
    definitions: Definitions
    events: EventSink
    tracer: Tracer | None
    """Starts the spans of OpenTelemetry; None if the settings do not turn it on."""
    clock: Clock
    sessions: Sessions
    signing_keys: SigningKeys
    statistics: Statistics
    lessons: Lessons
    habits: Habits
    knowledge: Knowledge
    """The statistics last read, plus this process's own calls since."""
    resting: ServerBreakers
    learner: HabitLearner | None
    """Learns from calls; None if the settings turn that off."""
    spend: Spend
    rates: Rates
    results: KeptResults
    audit: AuditLog
    pins: Pins
    replicas: Replicas | None
    archive: Archive
    activity: Activity | None
    """Where `pegboard serve` keeps its decisions; None if that is turned off."""
    index: IndexOf
    """Makes the vector index of a board, by its name; None means the exact index in memory."""
    fallback_index: IndexOf
    """The same for the fallback: vectors of two encoders never share an index."""
    retirement: RetentionJob
    amiss: Callable[[], str]
    """Says what is wrong with the stores on this machine; contains nothing secret."""
    close: Callable[[], Awaitable[None]]


def with_shards(settings: Settings, encoder: Encoder, behind: Embeddings) -> Embeddings:
    """The store of embeddings, behind the configured shards. Raises ConfigError for shards that cannot be used."""
    if not settings.index_shards:
        return behind
    return ShardEmbeddings(settings.index_shards, VectorSpace.of(encoder), behind)


def default_parts(settings: Settings, **replaced: Any) -> Parts:
    """The default parts for these settings, except those given in ``replaced``."""
    clock = replaced.get("clock") or SystemClock()
    state = open_state(settings, clock)
    encoder = replaced.get("encoder") or configured_encoder(settings, clock)
    remote = settings.encoder.provider != "local" and "encoder" not in replaced

    said = settings.audit_log
    audit = replaced.get("audit") or AuditLog(
        state.audit_logs.values(),
        clock=clock,
        key=said.key_here,
        values=said.values,
        required=said.required,
        acts=state.audit,
    )

    async def close() -> None:
        if isinstance(encoder, Closes):
            await encoder.close()
        await audit.close()
        await state.close()

    parts: dict[str, Any] = {
        "encoder": encoder,
        "fallback": in_process(settings) if remote and settings.encoder.fallback == "local" else None,
        "embeddings": with_shards(settings, encoder, state.embeddings),
        "definitions": state.definitions,
        "events": events_and(),
        "tracer": None,
        "clock": clock,
        "sessions": state.sessions,
        "signing_keys": state.signing_keys,
        "statistics": state.statistics,
        "lessons": state.lessons,
        "habits": state.habits,
        "spend": state.spend,
        "rates": state.rates,
        "results": state.results,
        "audit": audit,
        "pins": state.pins,
        "replicas": state.replicas,
        "archive": state.archive,
        "activity": state.activity,
        "retirement": state.retirement,
        "amiss": state.amiss,
        "close": close,
    } | replaced
    parts.setdefault(
        "knowledge",
        Knowledge(
            parts["statistics"],
            clock,
            prior=settings.statistics.start,
            smoothing=settings.statistics.weights,
            half_life=settings.economics.half_life,
        ),
    )
    parts.setdefault("learner", _learner(settings, parts["habits"], clock))
    parts.setdefault("resting", ServerBreakers(clock, settings.breakers.policy))
    parts.setdefault("index", indexes(settings, parts["encoder"], clock, parts["events"]))
    parts.setdefault("fallback_index", indexes(settings, parts["fallback"], clock, parts["events"]))
    return Parts(**parts)


def _learner(settings: Settings, store: Habits, clock: Clock) -> HabitLearner | None:
    said = settings.usage
    if not said.learn:
        return None
    return HabitLearner(HabitBook(clock, store, control=said.control, half_life=said.half_life_seconds))


@asynccontextmanager
async def opened_parts(settings: Settings, **replaced: Any) -> AsyncIterator[Parts]:
    """The default parts, closed when the block ends."""
    parts = default_parts(settings, **replaced)
    try:
        yield parts
    finally:
        await parts.close()


def events_and(*more: EventSink) -> EventSink:
    """A sink that sends events to the default sinks and to these."""
    return FanOut([LogEvents(), MemoryEvents(), *more])
