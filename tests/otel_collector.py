"""An OTLP/HTTP collector for tests: what it gets, by the official protos."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

KINDS = {Span.SPAN_KIND_SERVER: "server", Span.SPAN_KIND_CLIENT: "client", Span.SPAN_KIND_INTERNAL: "internal"}


@dataclass
class GotSpan:
    """A span as it arrived, with the scope and resource that it came with."""

    name: str
    kind: str
    trace: str
    id: str
    parent: str
    attributes: dict[str, Any]
    failed: bool
    scope: str
    resource: dict[str, Any]
    links: list[str]
    nanoseconds: int


@dataclass
class Collector:
    """``raw`` is every body and header that came. One that ``refuses`` says so of everything."""

    url: str = ""
    refuses: bool = False
    raw: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    spans: list[GotSpan] = field(default_factory=list)
    logs: list[tuple[str, dict[str, Any], str]] = field(default_factory=list)
    """Name, attributes and trace."""
    metrics: dict[str, Any] = field(default_factory=dict)
    """The latest of each name."""

    def take(self, path: str, body: bytes) -> None:
        self.raw.append(body)
        if path == "/v1/traces":
            self._take_spans(ExportTraceServiceRequest.FromString(body))
        elif path == "/v1/logs":
            for of_resource in ExportLogsServiceRequest.FromString(body).resource_logs:
                for scope in of_resource.scope_logs:
                    self.logs += [
                        (each.event_name, values(each.attributes), each.trace_id.hex()) for each in scope.log_records
                    ]
        else:
            for of_metrics in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for of_scope in of_metrics.scope_metrics:
                    self.metrics |= {each.name: each for each in of_scope.metrics}

    def _take_spans(self, request: ExportTraceServiceRequest) -> None:
        for of_resource in request.resource_spans:
            resource = values(of_resource.resource.attributes)
            for scope in of_resource.scope_spans:
                self.spans += [
                    GotSpan(
                        name=each.name,
                        kind=KINDS[each.kind],
                        trace=each.trace_id.hex(),
                        id=each.span_id.hex(),
                        parent=each.parent_span_id.hex(),
                        attributes=values(each.attributes),
                        failed=each.status.code == 2,
                        scope=scope.scope.name,
                        resource=resource,
                        links=[link.span_id.hex() for link in each.links],
                        nanoseconds=each.end_time_unix_nano - each.start_time_unix_nano,
                    )
                    for each in scope.spans
                ]

    def span(self, name: str, **having: str) -> GotSpan:
        """The only span of this name, and kind or scope."""
        wanted = [
            each
            for each in self.spans
            if each.name == name and all(getattr(each, key) == value for key, value in having.items())
        ]
        assert len(wanted) == 1, (name, [(each.name, each.kind) for each in self.spans])
        return wanted[0]

    def points(self, name: str) -> list[tuple[dict[str, Any], Any]]:
        """Attributes and point of each series of a metric."""
        metric = self.metrics[name]
        data = getattr(metric, metric.WhichOneof("data"))
        return [(values(each.attributes), each) for each in data.data_points]

    @property
    def everything(self) -> bytes:
        return b"\n".join(self.raw) + repr(self.headers).encode()


def values(attributes: Any) -> dict[str, Any]:
    return {each.key: _value(each.value) for each in attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, kind) if kind else None


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector on a port of its own."""
    got, lock = Collector(), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            with lock:
                got.headers.append({name.lower(): value for name, value in self.headers.items()})
                got.take(self.path, body)
            self.send_response(400 if got.refuses else 200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        got.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield got
        finally:
            server.shutdown()
            thread.join()
