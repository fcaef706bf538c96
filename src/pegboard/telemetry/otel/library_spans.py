"""Decisions of the library as spans of the application's own OpenTelemetry."""

from __future__ import annotations

import time
from typing import Any

from pegboard.events import Event, RouteDecided
from pegboard.extras import required
from pegboard.telemetry.otel.conventions import SCHEMA_URL, SCOPE
from pegboard.telemetry.otel.event_records import SOURCE, retrieval_attributes

MILLISECOND = 1_000_000
"""In nanoseconds."""


class DecisionSpans:
    """An event sink that makes a span of each decision, below the current span of the application.

    ``provider`` is a TracerProvider; without one, that of the application. With ``content``, the tools that a decision
    ranked are recorded. Raises ConfigError if OpenTelemetry is not installed.
    """

    def __init__(self, provider: Any = None, *, content: bool = False) -> None:
        self._trace = required("opentelemetry.trace", "otel")
        self._tracer = self._trace.get_tracer(SCOPE, tracer_provider=provider, schema_url=SCHEMA_URL)
        self._content = content

    def emit(self, event: Event) -> None:
        if not isinstance(event, RouteDecided):
            return
        end = time.time_ns()
        span = self._tracer.start_span(
            f"retrieval {SOURCE}",
            kind=self._trace.SpanKind.CLIENT,
            attributes=retrieval_attributes(event, content=self._content),
            start_time=end - int(event.latency_ms * MILLISECOND),
        )
        span.end(end)
