"""Event sinks that write logs and JSON lines, and one that fans out to several sinks."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, TextIO

from pegboard.events import Event, ModelRequestServed
from pegboard.protocols import EventSink

LOGGER = logging.getLogger("pegboard.events")
ACCESS = logging.getLogger("pegboard.access")
LOGGED = tuple(each.name for each in fields(ModelRequestServed) if each.name not in ("at", "reason"))
MOST = 200
"""Longest logged text from a client, such as a model's name, in characters; also the most tool names."""


class LogEvents:
    """Logs each event as one DEBUG record."""

    def emit(self, event: Event) -> None:
        if LOGGER.isEnabledFor(logging.DEBUG):
            LOGGER.debug("%s", json.dumps(event.as_dict(), default=str))


class AccessLog:
    """Logs each model request as one INFO record; a structured log also has its ``fields``."""

    def emit(self, event: Event) -> None:
        if isinstance(event, ModelRequestServed) and ACCESS.isEnabledFor(logging.INFO):
            ACCESS.info(
                "%s %d %s %s: %d of %d tools, %d of %d tokens, added %.1f ms of %.0f ms%s",
                event.upstream,
                event.status,
                _short(event.model) or "-",
                event.outcome,
                event.kept,
                event.tools,
                event.tokens_after,
                event.tokens_before,
                event.added_ms,
                event.latency_ms,
                f" ({event.failure})" if event.failure else "",
                extra={"fields": _fields(event)},
            )


class JsonLinesEvents:
    """Writes each event as one line of JSON, flushed at once."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def emit(self, event: Event) -> None:
        self._stream.write(json.dumps(event.as_dict(), default=str) + "\n")
        self._stream.flush()


class FanOut:
    """Sends every event to every sink."""

    def __init__(self, sinks: Sequence[EventSink]) -> None:
        self._sinks = tuple(sinks)

    def emit(self, event: Event) -> None:
        for sink in self._sinks:
            sink.emit(event)


def _fields(event: ModelRequestServed) -> dict[str, Any]:
    """The event without its reason, which may quote unreadable input."""
    said = {name: getattr(event, name) for name in LOGGED}
    return said | {
        "model": _short(event.model),
        **{of: [_short(name) for name in getattr(event, of)[:MOST]] for of in ("called", "brought_back")},
    }


def _short(text: str) -> str:
    """The text on one line, without control characters."""
    if text.isprintable():
        return text[:MOST]
    return "".join(each if each.isprintable() else "\ufffd" for each in text[:MOST])
