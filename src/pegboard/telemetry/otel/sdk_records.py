"""Records of a gateway as the SDK's own: spans, log records and metrics."""

from __future__ import annotations

from typing import Any

from opentelemetry._logs import LogRecord as ApiLogRecord
from opentelemetry._logs import SeverityNumber
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TraceState,
    set_span_in_context,
)

from pegboard.telemetry.otel.conventions import SCHEMA_URL, SCOPE
from pegboard.telemetry.otel.event_records import event_name, log_attributes
from pegboard.telemetry.otel.export_frames import ExportFrame, LogRecord, SpanRecord, within_range
from pegboard.telemetry.trace_spans import NO_SPAN, NO_TRACE

KINDS = {"server": SpanKind.SERVER, "client": SpanKind.CLIENT}
SAMPLED = TraceFlags(TraceFlags.SAMPLED)
NANOSECONDS = 1_000_000_000
SEVERITIES = {False: SeverityNumber.INFO, True: SeverityNumber.WARN}
CUMULATIVE = AggregationTemporality.CUMULATIVE


class SdkRecords:
    """``version`` is that of Pegboard, whose scope the records have."""

    def __init__(self, resource: Resource, version: str) -> None:
        self._resource = resource
        self._scope = InstrumentationScope(SCOPE, version, SCHEMA_URL)

    def spans(self, frame: ExportFrame) -> list[ReadableSpan]:
        return [self._span(SpanRecord(*each)) for each in frame.spans]

    def logs(self, frame: ExportFrame) -> list[ReadableLogRecord]:
        return [self._log(LogRecord(*each)) for each in frame.logs]

    def metrics(self, frame: ExportFrame) -> MetricsData:
        made = [self._metric(each, frame) for each in frame.metrics]
        scope = ScopeMetrics(scope=self._scope, metrics=made, schema_url=SCHEMA_URL)
        of_resource = ResourceMetrics(resource=self._resource, scope_metrics=[scope], schema_url=SCHEMA_URL)
        return MetricsData(resource_metrics=[of_resource])

    def _span(self, record: SpanRecord) -> ReadableSpan:
        state = TraceState.from_header([record.state]) if record.state else TraceState()
        above = None if record.parent == NO_SPAN else _context(record.trace_id, record.parent, remote=False)
        return ReadableSpan(
            name=record.name,
            context=_context(record.trace_id, record.span_id, remote=False, state=state),
            parent=above,
            resource=self._resource,
            attributes=within_range(record.attributes),
            links=[Link(_context(trace_id, span_id, remote=True)) for trace_id, span_id in record.links],
            kind=KINDS[record.kind],
            status=Status(StatusCode.ERROR, record.message or None) if record.error else Status(),
            start_time=record.start,
            end_time=record.end,
            instrumentation_scope=self._scope,
        )

    def _log(self, record: LogRecord) -> ReadableLogRecord:
        number, at = SEVERITIES[record.warns], int(record.values[0] * NANOSECONDS)
        traced = record.trace_id != NO_TRACE
        above = NonRecordingSpan(_context(record.trace_id, record.span_id, remote=False)) if traced else None
        made = ApiLogRecord(
            timestamp=at,
            observed_timestamp=at,
            context=set_span_in_context(above) if above is not None else None,
            severity_text=number.name,
            severity_number=number,
            attributes=within_range(log_attributes(record.kind, record.values)),
            event_name=event_name(record.kind),
        )
        return ReadableLogRecord(made, self._resource, self._scope)

    def _metric(self, row: list[Any], frame: ExportFrame) -> Metric:
        name, says, unit, kind, bounds, points = row
        data: Sum | Gauge | Histogram
        if kind == "histogram":
            data = Histogram([_bucketed(each, bounds, frame) for each in points], CUMULATIVE)
        else:
            values = [NumberDataPoint(each[0], frame.began, frame.now, each[1]) for each in points]
            data = Sum(values, CUMULATIVE, is_monotonic=True) if kind == "sum" else Gauge(values)
        return Metric(name=name, description=says, unit=unit, data=data)


def _bucketed(point: list[Any], bounds: list[float], frame: ExportFrame) -> HistogramDataPoint:
    attributes, counts, total, count, least, greatest = point
    return HistogramDataPoint(
        attributes=attributes,
        start_time_unix_nano=frame.began,
        time_unix_nano=frame.now,
        count=count,
        sum=total,
        bucket_counts=counts,
        explicit_bounds=bounds,
        min=least,
        max=greatest,
    )


def _context(trace_id: bytes, span_id: bytes, *, remote: bool, state: TraceState | None = None) -> SpanContext:
    return SpanContext(int.from_bytes(trace_id, "big"), int.from_bytes(span_id, "big"), remote, SAMPLED, state)
