"""The options that take effect only at start: a reload says so, and the dashboard shows what is in force."""

from __future__ import annotations

from operator import attrgetter
from typing import TypeVar

from pydantic import BaseModel

from pegboard.settings import Settings

Model = TypeVar("Model", bound=BaseModel)
FIXED = (
    *("host", "port", "allowed_hosts", "start_wait", "search_wait", "connect_timeout", "call_timeout"),
    *("health_timeout", "result_limit", "list_limit", "list_bytes", "lazy", "idle_stop"),
    *("most_connections", "head_timeout", "body_timeout"),
    *("often_used", "session_ttl", "encoder", "encoder_threads", "cache_dir", "state_dir", "credentials"),
    *("index", "index_recall", "index_shards", "chroma", "pgvector", "qdrant"),
    *("state", "statistics", "usage", "retention", "audit_log", "activity.keep", "activity.most"),
    *("replica_url", "metrics", "dashboard", "log_format", "drain_wait", "drain_timeout"),
    *("allowed_origins", "otel", "users.public_url", "llm.record", "llm.most_recorded"),
)
"""Their names."""


def waiting(started: Settings, now: Settings) -> list[str]:
    """The options whose changes since the start wait for a restart.

    >>> waiting(Settings(), Settings(port=1, k=3))
    ['port']
    """
    return [name for name in FIXED if attrgetter(name)(started) != attrgetter(name)(now)]


def in_force(started: Settings, now: Settings) -> Settings:
    """The settings now, with the options that take effect only at start as they were then."""
    changed = now
    for name in waiting(started, now):
        changed = _with(changed, name.split("."), attrgetter(name)(started))
    return changed


def _with(model: Model, path: list[str], value: object) -> Model:
    name, *below = path
    return model.model_copy(update={name: _with(getattr(model, name), below, value) if below else value})
