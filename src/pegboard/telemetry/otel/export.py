"""Takes spans and events, and hands them to an exporter process. No request waits for it, or for a collector.

request ─► a record put aside ─► thread: frames, every second ─► pipe ─► exporter process ─► collector

The SDK needs ten times as long for a span as the gateway, and would share its interpreter lock (decision 47).
"""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

from pegboard import operating_system
from pegboard.events import Event, RouteDecided
from pegboard.telemetry.otel.conventions import ERROR
from pegboard.telemetry.otel.event_records import SOURCE, is_warning, log_values, retrieval_attributes
from pegboard.telemetry.otel.export_frames import MISSED, ExportFrame, LogRecord, SpanRecord, written
from pegboard.telemetry.otel.export_options import MOST_TRACES, ExportOptions
from pegboard.telemetry.otel.histograms import Histograms
from pegboard.telemetry.trace_sampler import TRACES, SecondLimit, TraceSampler
from pegboard.telemetry.trace_spans import CURRENT, NO_SPAN, NO_TRACE, Tracer, TraceSpan

LOGGER = logging.getLogger(__name__)
MOST_WAITING = 20_000
"""Spans and events that wait for the exporter process; further ones are lost, and counted."""
AT_ONCE = 1_000
FLUSH_SECONDS = 5.0
"""Seconds that the end of a gateway waits for what was not exported yet."""
LONGEST_PAUSE = 60.0
NANOSECONDS = 1_000_000_000
COMMAND = (sys.executable, "-m", "pegboard.telemetry.otel.exporter_process")

Points = Callable[[], list[list[Any]]]


class OtelExport:
    """A sink of spans and of events. ``points`` are further metrics, as `Histograms.metrics` has them; without them,
    how many traces began here."""

    def __init__(self, options: ExportOptions, points: Points | None = None, *, version: str = "") -> None:
        most = options.most_traces
        sampler = TraceSampler(options.ratio, None if most is None else SecondLimit(most))
        self.tracer = Tracer(self, sampler=sampler, follows_parent=options.follows_parent, content=options.content)
        self._warnings = SecondLimit(MOST_TRACES if most is None else most)
        self.histograms = Histograms()
        self.lost = 0
        self._options = options
        self._points = points or self._counted
        self._version = version
        self._traces, self._logs = "traces" in options.signals, "logs" in options.signals
        self._measures = "metrics" in options.signals
        self._waiting: deque[TraceSpan | tuple[Event, TraceSpan | None]] = deque()
        self._wake = threading.Event()
        self._closing = self._ended = self._missed = False
        self._began = time.time_ns()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._run, name="otel-export", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def ended(self, span: TraceSpan) -> None:
        """Safe from any thread."""
        if span.error:
            span.attributes[ERROR] = span.error
        if self._measures and span.metric:
            self.histograms.record(span.metric, span.seconds, span.attributes)
        if self._traces and span.recorded:
            self._put(span)

    def emit(self, event: Event) -> None:
        """Safe from any thread. A decision is a span below the request that needs it. Of traces that are not recorded,
        only warnings are sent, as many a second as traces."""
        span = CURRENT.get()
        if span is not None and not span.recorded:
            if self._logs and is_warning(event) and self._warnings.admits():
                self._put((event, span))
            return
        if type(event) is RouteDecided and span is not None:
            self._decided(event)
        if self._logs:
            self._put((event, span))

    def amiss(self) -> str:
        """What is wrong with the export; empty if the collector took what it was last sent."""
        if self._ended:
            return "The exporter of OpenTelemetry ended, and is started again."
        return "The collector of OpenTelemetry does not take what it is sent." if self._missed else ""

    def close(self, seconds: float | None = None) -> None:
        """Export what waits, within so many seconds (`FLUSH_SECONDS`); then end the exporter process."""
        seconds = FLUSH_SECONDS if seconds is None else seconds
        end = time.monotonic() + seconds
        self._closing = True
        self._wake.set()
        self._thread.join(seconds)
        process = self._process
        if process is None:
            return
        try:
            process.wait(max(0.05, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            LOGGER.warning("Some spans and events were not delivered: the collector did not take them in time.")
            process.kill()
            process.wait()

    def _put(self, record: TraceSpan | tuple[Event, TraceSpan | None]) -> None:
        if len(self._waiting) >= MOST_WAITING:
            self.lost += 1
            return
        self._waiting.append(record)
        if len(self._waiting) == AT_ONCE:
            self._wake.set()

    def _decided(self, event: RouteDecided) -> None:
        attributes = retrieval_attributes(event, content=self.tracer.content)
        span = self.tracer.start(f"retrieval {SOURCE}", "client", attributes)
        span.seconds = event.latency_ms / 1_000
        span.start -= int(span.seconds * NANOSECONDS)
        self.ended(span)

    def _run(self) -> None:
        """The thread. A process that ends is started again, after a pause that doubles."""
        pause, measured, told, waits = 1.0, time.monotonic(), 0, False
        while True:
            if waits:
                self._wake.wait(self._options.batch_seconds)
            self._wake.clear()
            closing = self._closing
            due = self._measures and (closing or time.monotonic() - measured >= self._options.metric_seconds)
            try:
                while self._waiting or due or not waits:
                    lost = self.lost
                    told = lost if self._pass_on(lost - told, measured=due) else told
                    if due:
                        measured, due = time.monotonic(), False
                    waits = True
                if closing:
                    self._end()
                    return
                pause, self._ended = 1.0, False
            except OSError as error:
                if closing:
                    return
                self._ended = True
                LOGGER.warning("The exporter of OpenTelemetry ended and is started again: %s", type(error).__name__)
                self._stop()
                self._wake.wait(pause)
                waits = False
                pause = min(2 * pause, LONGEST_PAUSE)

    def _counted(self) -> list[list[Any]]:
        sampler = self.tracer.sampler
        points = [[{"recorded": "true"}, sampler.taken], [{"recorded": "false"}, sampler.left_out]]
        return [["pegboard.traces", TRACES, "1", "sum", [], points]]

    def _pass_on(self, lost: int, *, measured: bool) -> bool:
        """Send what waits, as much as a frame has; whether it was sent. What no frame can be made of is lost, and
        counted. Raises OSError."""
        records = [self._waiting.popleft() for _ in range(min(AT_ONCE, len(self._waiting)))]
        try:
            frame = self._frame(records, measured=measured)
            frame.lost = lost
            self._send(frame)
        except OSError:
            raise
        except Exception as error:  # noqa: BLE001  # one frame may not end the others
            self.lost += len(records)
            LOGGER.warning("Some spans and events were lost: no frame was made of them (%s).", type(error).__name__)
            return False
        return True

    def _frame(self, records: Sequence[TraceSpan | tuple[Event, TraceSpan | None]], *, measured: bool) -> ExportFrame:
        frame = ExportFrame(began=self._began, now=time.time_ns())
        for record in records:
            if isinstance(record, TraceSpan):
                frame.spans.append(_span(record))
            else:
                frame.logs.append(_log(*record))
        if measured:
            frame.metrics = [*self.histograms.metrics(), *self._points()]
        return frame

    def _send(self, frame: ExportFrame) -> None:
        """Raises OSError. Blocks while the process is behind."""
        if self._process is None:
            apart = operating_system.apart_from_signals()
            self._process = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **apart)
            answers = (self._process.stdout,)
            threading.Thread(target=self._listen, args=answers, name="otel-answers", daemon=True).start()
            self._write(ExportFrame(setup=self._setup()))
        self._write(frame)

    def _write(self, frame: ExportFrame) -> None:
        pipe = self._process.stdin if self._process is not None else None
        if pipe is None:
            raise BrokenPipeError
        pipe.write(written(frame))
        pipe.flush()

    def _listen(self, answers: BinaryIO) -> None:
        """The thread of one exporter process."""
        with answers:
            while answer := answers.read(1):
                self._missed = answer == MISSED

    def _setup(self) -> dict[str, Any]:
        """By the pipe, not by arguments: headers are secret, and others may list the arguments of processes."""
        options = self._options
        return {
            "endpoint": options.endpoint,
            "protocol": options.protocol,
            "headers": dict(options.headers),
            "console": options.console,
            "printed": list(options.printed),
            "signals": list(options.signals),
            "service": options.service,
            "version": self._version,
        }

    def _end(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()


def _span(span: TraceSpan) -> SpanRecord:
    end = span.start + int(span.seconds * NANOSECONDS)
    context, links = span.context, [each[:2] for each in span.links]
    return SpanRecord(
        span.name,
        span.kind,
        context.trace_id,
        context.span_id,
        span.parent,
        context.state,
        span.start,
        end,
        span.attributes,
        span.error,
        span.message,
        links,
    )


def _log(event: Event, span: TraceSpan | None) -> LogRecord:
    trace_id, span_id = (NO_TRACE, NO_SPAN) if span is None else span.context[:2]
    return LogRecord(event.kind, log_values(event), is_warning(event), trace_id, span_id)
