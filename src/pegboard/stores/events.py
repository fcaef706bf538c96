"""Where events go: a log, a file of JSON lines, several places at once."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import TextIO

from pegboard.events import Event
from pegboard.seams import EventSink

LOGGER = logging.getLogger("pegboard.events")


class LogEvents:
    """One DEBUG record an event."""

    def emit(self, event: Event) -> None:
        if LOGGER.isEnabledFor(logging.DEBUG):
            LOGGER.debug("%s", json.dumps(event.as_dict(), default=str))


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
