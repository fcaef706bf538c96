"""What leaves the exporter process by gRPC and on a console, and what a gateway on standard streams sends."""

from __future__ import annotations

import io
import json
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2_grpc as logs_service
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2_grpc as metrics_service
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as traces
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as trace_service

from otel_collector import Collector, collecting
from pegboard.events import CallRejected, ConfigurationRefused, Event
from pegboard.settings.otel_settings import SIGNALS, OtelSettings
from pegboard.telemetry.otel import exporter_process
from pegboard.telemetry.otel.conventions import HTTP_DURATION, HTTP_METHOD
from pegboard.telemetry.otel.export import OtelExport
from pegboard.telemetry.otel.export_frames import MISSED, TAKEN, ExportFrame, written
from pegboard.telemetry.otel.export_options import GRPC, ExportOptions, export_options

SERVER = str(Path(__file__).parents[2] / "servers" / "traced.py")
PATIENCE = 120.0
"""Seconds that the exporter process has to start and to deliver, on a machine with much else to do."""
EVENT = ConfigurationRefused(at=1.0, code="bad_config", reason="it quotes what was read")


@contextmanager
def collecting_by_grpc() -> Iterator[Collector]:
    """A collector that speaks gRPC alone."""
    got, lock = Collector(), threading.Lock()

    def taking(path: str, answer: Any) -> Any:
        def take(_self: object, request: Any, context: grpc.ServicerContext) -> Any:
            with lock:
                got.headers.append({each.key: str(each.value) for each in context.invocation_metadata()})
                got.take(path, request.SerializeToString())
            return answer

        return take

    server = grpc.server(ThreadPoolExecutor(3))
    signals = [
        (trace_service, "Trace", taking("/v1/traces", traces.ExportTraceServiceResponse())),
        (metrics_service, "Metrics", taking("/v1/metrics", metrics.ExportMetricsServiceResponse())),
        (logs_service, "Logs", taking("/v1/logs", logs.ExportLogsServiceResponse())),
    ]
    for module, name, take in signals:
        servicer = type(name, (getattr(module, f"{name}ServiceServicer"),), {"Export": take})
        getattr(module, f"add_{name}ServiceServicer_to_server")(servicer(), server)
    got.url = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield got
    finally:
        server.stop(None).wait()


def exported(options: ExportOptions) -> None:
    """A span with a duration, an event within it, and the end."""
    export = OtelExport(options, version="1.2.3")
    export.start()
    with export.tracer.start("GET /x", "server", {HTTP_METHOD: "GET"}, metric=HTTP_DURATION):
        export.emit(EVENT)
    export.close(PATIENCE)


@pytest.mark.requirement("otel.ways")
def test_spans_metrics_and_logs_go_by_grpc_with_the_headers_of_the_settings() -> None:
    with collecting_by_grpc() as collector:
        headers = {"authorization": "Bearer of-the-collector"}
        exported(
            ExportOptions(endpoint=collector.url, protocol=GRPC, headers=headers, signals=SIGNALS, service="a-gateway")
        )

    span = collector.span("GET /x", kind="server")
    assert (span.resource["service.name"], span.resource["service.version"]) == ("a-gateway", "1.2.3")
    [(labels, point)] = collector.points(HTTP_DURATION)
    assert (labels[HTTP_METHOD], point.count) == ("GET", 1)
    assert collector.logs == [("pegboard.configuration_refused", {"pegboard.code": "bad_config"}, span.trace)]
    assert {each["authorization"] for each in collector.headers} == {"Bearer of-the-collector"}


@pytest.mark.requirement("otel.ways")
def test_a_console_gets_every_signal_on_the_error_stream_and_nothing_on_the_other(
    capfd: pytest.CaptureFixture[str],
) -> None:
    exported(ExportOptions(console=True, signals=SIGNALS, service="a-gateway"))

    out, err = capfd.readouterr()
    assert out == ""
    found = list(documents(err))
    assert [each["name"] for each in found if "name" in each] == ["GET /x"]
    assert [each["event_name"] for each in found if "event_name" in each] == ["pegboard.configuration_refused"]
    [of_metrics] = [each for each in found if "resource_metrics" in each]
    assert HTTP_DURATION in json.dumps(of_metrics)


@pytest.mark.parametrize(
    ("table", "variables", "printed", "collected"),
    [
        ({"enabled": True}, {}, (), SIGNALS),
        ({"enabled": True}, {"TRACES": "console"}, ("traces",), ("metrics", "logs")),
        ({"enabled": True}, {"TRACES": "console", "LOGS": "none"}, ("traces",), ("metrics",)),
        ({"endpoint": "http://collector:4318"}, {"LOGS": "console"}, ("logs",), ("traces", "metrics")),
        ({"console": True}, {}, SIGNALS, ()),
        ({"console": True, "endpoint": "http://collector:4318"}, {}, SIGNALS, SIGNALS),
        ({"console": True, "endpoint": "http://collector:4318"}, {"LOGS": "console"}, SIGNALS, ("traces", "metrics")),
    ],
)
def test_each_signal_goes_where_its_variable_or_the_table_says(
    table: dict[str, Any], variables: dict[str, str], printed: Sequence[str], collected: Sequence[str]
) -> None:
    environment = {f"OTEL_{signal}_EXPORTER": chosen for signal, chosen in variables.items()}
    options = export_options(OtelSettings(**table), environment)
    assert options is not None

    made = exporter_process.exporters(OtelExport(options)._setup())

    names = {signal: [type(each).__name__ for each in found] for signal, found in made.items()}
    assert {signal for signal, found in names.items() if any("Console" in each for each in found)} == set(printed)
    assert {signal for signal, found in names.items() if any("OTLP" in each for each in found)} == set(collected)
    for each in (each for found in made.values() for each in found):
        each.shutdown()


@pytest.mark.requirement("otel.ways")
async def test_a_gateway_on_standard_streams_sends_the_spans_of_its_client_before_it_ends(tmp_path: Path) -> None:
    with collecting() as collector:
        config = tmp_path / "servers.json"
        own = {"otel": {"endpoint": collector.url}, "exposure": "eager", "start_wait": PATIENCE, "profile": "keyword"}
        server = {"command": sys.executable, "args": [SERVER]}
        config.write_text(json.dumps({"mcpServers": {"demo": server}, "pegboard": own}))
        folders = {"PEGBOARD_STATE_DIR": str(tmp_path / "state"), "PEGBOARD_CACHE_DIR": str(tmp_path / "cache")}
        gateway = StdioServerParameters(
            command=sys.executable, args=["-m", "pegboard", "mcp", "--config", str(config), "--no-attach"], env=folders
        )
        async with Client(stdio_client(gateway), mode="legacy", cache=None) as client:
            [name] = [each.name for each in (await client.list_tools()).tools if "echo" in each.name]
            await client.call_tool(name, {"text": "hi"})

    asked = collector.span(f"tools/call {name}", kind="server")
    assert asked.attributes["network.transport"] == "pipe"
    assert collector.span("tools/call echo_text", kind="client").parent == asked.id


def documents(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text, which follow each other."""
    decoder, place = json.JSONDecoder(), 0
    while (place := text.find("{", place)) >= 0:
        found, place = decoder.raw_decode(text, place)
        yield found


def test_the_gateway_is_told_whether_a_collector_takes_what_it_is_sent() -> None:
    class Refusing:
        """Takes every second frame."""

        def __init__(self, setup: Mapping[str, Any]) -> None:
            self._turns = iter((True, False, True))

        def export(self, frame: ExportFrame) -> bool:
            return next(self._turns)

        def close(self) -> None: ...

    frames, answers = io.BytesIO(), io.BytesIO()
    frames.write(written(ExportFrame(setup={})) + 3 * written(ExportFrame(lost=1)))
    frames.seek(0)

    exporter_process.main(frames, Refusing, answers)  # type: ignore[arg-type]

    assert answers.getvalue() == TAKEN + MISSED + TAKEN


def test_what_is_amiss_with_the_export_is_said_until_it_works() -> None:
    export = OtelExport(ExportOptions(signals=SIGNALS))
    said = [export.amiss()]
    for answer in (MISSED, TAKEN):
        export._listen(io.BytesIO(answer))
        said.append(export.amiss())

    assert said == ["", "The collector of OpenTelemetry does not take what it is sent.", ""]


def test_texts_and_numbers_that_no_collector_takes_are_replaced_and_the_export_goes_on() -> None:
    with collecting() as collector:
        export = OtelExport(ExportOptions(endpoint=collector.url, signals=SIGNALS))
        export.start()
        with export.tracer.start("GET /\ud800", "server", {HTTP_METHOD: "\udfff", "size": 2**70}, metric=HTTP_DURATION):
            export.emit(CallRejected(at=1.0, tool="no\ud800", reason="unknown"))
        export._wake.set()
        with export.tracer.start("GET /y", "server", {HTTP_METHOD: "GET"}, metric=HTTP_DURATION):
            pass
        export.close(PATIENCE)

    odd = collector.span("GET /?", kind="server")
    assert (odd.attributes[HTTP_METHOD], odd.attributes["size"]) == ("?", 2**63 - 1)
    assert collector.span("GET /y", kind="server")
    assert [attributes["pegboard.tool"] for _, attributes, _ in collector.logs] == ["no?"]
    assert {labels[HTTP_METHOD] for labels, _ in collector.points(HTTP_DURATION)} == {"?", "GET"}


def test_numbers_that_only_the_way_to_the_exporter_can_hold_are_the_greatest_of_the_collector() -> None:
    with collecting() as collector:
        export = OtelExport(ExportOptions(endpoint=collector.url, signals=SIGNALS))
        export.start()
        with export.tracer.start("GET /x", "server", {"least": -(2**63), "edge": 2**63, "greatest": 2**64 - 1}):
            export.emit(CallRejected(at=1.0, tool="x", reason=2**63))  # type: ignore[arg-type]  # any number of an event
        export.close(PATIENCE)

    assert collector.span("GET /x", kind="server").attributes == {
        "least": -(2**63),
        "edge": 2**63 - 1,
        "greatest": 2**63 - 1,
    }
    assert [attributes["pegboard.reason"] for _, attributes, _ in collector.logs] == [2**63 - 1]


def test_an_event_that_no_record_can_be_made_of_is_lost_and_counted_and_the_export_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Unknown(Event):
        """No event of `pegboard.events`."""

    with collecting() as collector:
        export = OtelExport(ExportOptions(endpoint=collector.url, signals=SIGNALS))
        export.emit(Unknown(at=1.0))
        assert not export._pass_on(0, measured=False)
        export.start()
        export.emit(EVENT)
        export.close(PATIENCE)

    assert export.lost == 1
    assert "no frame was made of them (AttributeError)" in caplog.text
    assert [name for name, *_ in collector.logs] == ["pegboard.configuration_refused"]
