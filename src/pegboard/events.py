"""What happened, as data. Events carry hashes and names, never query text, arguments or secrets (M30)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """``at`` is seconds since the epoch."""

    at: float

    @property
    def kind(self) -> str:
        return type(self).__name__

    def as_dict(self) -> dict[str, Any]:
        return {"event": self.kind} | asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteDecided(Event):
    """One routing decision (seed 000 §5.7). ``scores`` maps each candidate to its score, best first."""

    turn_id: str
    profile: str
    query_embedding_hash: str
    candidates: tuple[str, ...]
    scores: Mapping[str, float]
    gated_out_by_state: tuple[str, ...]
    active_set: tuple[str, ...]
    phase1_tokens: int
    phase2_tokens: int
    latency_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRejected(Event):
    """The guard refused a call: the tool was not available, or the arguments did not fit."""

    tool: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFinished(Event):
    """A call came back from its server."""

    tool: str
    success: bool
    latency_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerChanged(Event):
    """A server became ``ready``, ``idle``, ``unhealthy`` or ``stopped``; ``reason`` is empty when it is ready."""

    server: str
    state: str
    reason: str = ""
    tools: int = 0
