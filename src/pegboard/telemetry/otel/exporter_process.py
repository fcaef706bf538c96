"""The exporter process: `python -m pegboard.telemetry.otel.exporter_process`, started by a gateway.

It reads frames from its standard input until the gateway ends, and exports them by the official SDK. While a collector
does not answer, it does not read, and the gateway counts what it cannot put aside any more. After each frame it
writes a byte: whether the collector took it.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from opentelemetry.sdk._logs.export import ConsoleLogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, MetricExportResult
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SpanExportResult

from pegboard.operating_system import BEHIND_REQUESTS, yield_to_others
from pegboard.telemetry.otel.export_frames import MISSED, TAKEN, ExportFrame, read
from pegboard.telemetry.otel.sdk_records import SdkRecords

COMPLAINT_SECONDS = 60.0
"""Seconds between two lines about a collector that takes nothing."""
DELIVERED = (SpanExportResult.SUCCESS, MetricExportResult.SUCCESS, LogRecordExportResult.SUCCESS)
PATHS = {"traces": "v1/traces", "metrics": "v1/metrics", "logs": "v1/logs"}


def exporters(setup: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The SDK's exporters of each signal. Without an endpoint, they read the standard variables themselves."""
    made: dict[str, list[Any]] = {signal: [] for signal in setup["signals"]}
    consoles = {"traces": ConsoleSpanExporter, "metrics": ConsoleMetricExporter, "logs": ConsoleLogRecordExporter}
    for signal, found in made.items():
        is_printed = signal in setup.get("printed", ())
        if setup["console"] or is_printed:
            found.append(consoles[signal](out=sys.stderr))
        if not is_printed and (setup["endpoint"] or not setup["console"]):
            found.append(_otlp(signal, setup))
    return made


def _otlp(signal: str, setup: Mapping[str, Any]) -> Any:
    endpoint, headers = setup["endpoint"], setup["headers"] or None
    if setup["protocol"] == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as GrpcLogs
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcMetrics
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpans

        kinds: dict[str, Any] = {"traces": GrpcSpans, "metrics": GrpcMetrics, "logs": GrpcLogs}
        insecure = endpoint.startswith("http://") if endpoint else None
        return kinds[signal](endpoint=endpoint, headers=headers, insecure=insecure)
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    kinds = {"traces": OTLPSpanExporter, "metrics": OTLPMetricExporter, "logs": OTLPLogExporter}
    return kinds[signal](endpoint=f"{endpoint}/{PATHS[signal]}" if endpoint else None, headers=headers)


class Exporter:
    """Exports frames; says once a minute, on stderr, that they cannot be delivered."""

    def __init__(self, setup: Mapping[str, Any]) -> None:
        named = {"service.name": setup["service"], "service.version": setup["version"]}
        self._records = SdkRecords(Resource.create(named), setup["version"])
        self._exporters = exporters(setup)
        self._complained = -COMPLAINT_SECONDS

    def export(self, frame: ExportFrame) -> bool:
        """Whether all of it was taken."""
        if frame.lost:
            self._complain(f"{frame.lost} spans and events were lost: the collector is too slow.")
        taken = not frame.lost
        if frame.spans:
            taken &= self._deliver("traces", self._records.spans(frame))
        if frame.logs:
            taken &= self._deliver("logs", self._records.logs(frame))
        if frame.metrics:
            taken &= self._deliver("metrics", self._records.metrics(frame))
        return taken

    def close(self) -> None:
        for each in (each for found in self._exporters.values() for each in found):
            each.shutdown()

    def _deliver(self, signal: str, records: Any) -> bool:
        taken = True
        for each in self._exporters.get(signal, ()):
            try:
                done = each.export(records) in DELIVERED
            except Exception as error:  # noqa: BLE001  # one batch may not end the others
                self._complain(f"{signal} could not be exported ({type(error).__name__}).")
                taken = False
                continue
            if not done:
                self._complain(f"{signal} could not be delivered: the collector does not take them.")
                taken = False
        return taken

    def _complain(self, what: str) -> None:
        if time.monotonic() - self._complained >= COMPLAINT_SECONDS:
            self._complained = time.monotonic()
            sys.stderr.write(f"pegboard: WARNING: OpenTelemetry: {what}\n")
            sys.stderr.flush()


def main(
    stream: BinaryIO | None = None,
    made: Callable[[Mapping[str, Any]], Exporter] = Exporter,
    answers: BinaryIO | None = None,
) -> None:
    """Serve one gateway."""
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # it would write a line for each batch
    source = sys.stdin.buffer if stream is None else stream
    first = read(source)
    if first is None or first.setup is None:
        return
    exporter = made(first.setup)
    told = sys.stdout.buffer if answers is None else answers
    while (frame := read(source)) is not None:
        told.write(TAKEN if exporter.export(frame) else MISSED)
        told.flush()
    exporter.close()


if __name__ == "__main__":
    yield_to_others(BEHIND_REQUESTS)
    main()
