"""What boards are made of, whichever board it is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from pegboard.clock import SystemClock
from pegboard.compose.encoders import configured_encoder, in_process
from pegboard.compose.indexes import IndexOf, indexes
from pegboard.routing.economics import Knowledge
from pegboard.routing.resting import Resting
from pegboard.seams import (
    Clock,
    Definitions,
    Embeddings,
    Encoder,
    EventSink,
    Lessons,
    Pins,
    Replicas,
    Sessions,
    SigningKeys,
    Spend,
    Statistics,
)
from pegboard.settings import Settings
from pegboard.stores import (
    FanOut,
    LogEvents,
    MemoryEvents,
)
from pegboard.stores.retention import Retirement
from pegboard.stores.state import open_state


@runtime_checkable
class Closes(Protocol):
    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a board is made of besides its catalog and settings; any of it may be replaced. Close it in the end.

    ``fallback`` encodes while ``encoder`` does not answer; None where words do.
    """

    encoder: Encoder
    fallback: Encoder | None
    embeddings: Embeddings
    definitions: Definitions
    events: EventSink
    clock: Clock
    sessions: Sessions
    signing_keys: SigningKeys
    statistics: Statistics
    lessons: Lessons
    knowledge: Knowledge
    """What the statistics said last, with this process's own calls since."""
    resting: Resting
    spend: Spend
    pins: Pins
    replicas: Replicas | None
    index: IndexOf
    """The index for the vectors of a board, by its name; None for the exact one, which is in memory."""
    fallback_index: IndexOf
    """The same for the vectors of the fallback: those of two encoders are never in one."""
    retirement: Retirement
    amiss: Callable[[], str]
    """What is wrong with the stores on this machine, for everybody to read."""
    close: Callable[[], Awaitable[None]]


def default_parts(settings: Settings, **replaced: Any) -> Parts:
    """The parts that work out of the box, with those given put in their places."""
    clock = replaced.get("clock") or SystemClock()
    state = open_state(settings, clock)
    encoder = replaced.get("encoder") or configured_encoder(settings, clock)
    remote = settings.encoder.provider != "local" and "encoder" not in replaced

    async def close() -> None:
        if isinstance(encoder, Closes):
            await encoder.close()
        await state.close()

    parts: dict[str, Any] = {
        "encoder": encoder,
        "fallback": in_process(settings) if remote and settings.encoder.fallback == "local" else None,
        "embeddings": state.embeddings,
        "definitions": state.definitions,
        "events": events_and(),
        "clock": clock,
        "sessions": state.sessions,
        "signing_keys": state.signing_keys,
        "statistics": state.statistics,
        "lessons": state.lessons,
        "spend": state.spend,
        "pins": state.pins,
        "replicas": state.replicas,
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
    breakers = settings.breakers
    parts.setdefault(
        "resting", Resting(clock, failures=breakers.failures, rest=breakers.rest, longest=breakers.longest)
    )
    parts.setdefault("index", indexes(settings, parts["encoder"], clock))
    parts.setdefault("fallback_index", indexes(settings, parts["fallback"], clock))
    return Parts(**parts)


@asynccontextmanager
async def opened_parts(settings: Settings, **replaced: Any) -> AsyncIterator[Parts]:
    """The default parts, closed at the end."""
    parts = default_parts(settings, **replaced)
    try:
        yield parts
    finally:
        await parts.close()


def events_and(*more: EventSink) -> EventSink:
    """Events to where they go by default, and to these."""
    return FanOut([LogEvents(), MemoryEvents(), *more])
