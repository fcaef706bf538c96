"""Where events go: a log, a file of JSON lines, several places at once."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, TextIO

from pegboard.events import Event, ModelRequestServed
from pegboard.seams import EventSink

LOGGER = logging.getLogger("pegboard.events")
ACCESS = logging.getLogger("pegboard.access")
LOGGED = tuple(each.name for each in fields(ModelRequestServed) if each.name not in ("at", "reason"))
MOST = 200
"""Characters of what a client says, such as the name of a model."""


class LogEvents:
    """One DEBUG record an event."""

    def emit(self, event: Event) -> None:
        if LOGGER.isEnabledFor(logging.DEBUG):
            LOGGER.debug("%s", json.dumps(event.as_dict(), default=str))


class AccessLog:
    """One INFO record a model request, whose ``fields`` a structured log has beside the message."""

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
    """One line of JSON an event, flushed at once."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def emit(self, event: Event) -> None:
        self._stream.write(json.dumps(event.as_dict(), default=str) + "\n")
        self._stream.flush()


class FanOut:
    """Every event to every sink."""

    def __init__(self, sinks: Sequence[EventSink]) -> None:
        self._sinks = tuple(sinks)

    def emit(self, event: Event) -> None:
        for sink in self._sinks:
            sink.emit(event)


def _fields(event: ModelRequestServed) -> dict[str, Any]:
    """The event without its reason: that may quote what could not be read."""
    said = {name: getattr(event, name) for name in LOGGED}
    return said | {
        "model": _short(event.model),
        **{of: [_short(name) for name in getattr(event, of)[:MOST]] for of in ("called", "brought_back")},
    }


def _short(text: str) -> str:
    """On one line, whatever a client put into it."""
    if text.isprintable():
        return text[:MOST]
    return "".join(each if each.isprintable() else "\ufffd" for each in text[:MOST])
