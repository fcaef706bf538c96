"""OpenTelemetry of a gateway that serves, as a collector gets it by the official protos."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from doors import Raw
from model_upstream import ModelUpstream
from otel_collector import Collector, GotSpan, collecting
from pegboard.telemetry.otel import export
from pegboard_bench.ports import free_port
from processes import until
from served import Gateway, OpenGateway

SERVER = str(Path(__file__).parents[1] / "servers" / "traced.py")
TRACE, ROOT, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", "b7ad6b7169203331"
COUNTED = {"prompt_tokens": 120, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 20}}
CHAT = json.dumps({"id": "chatcmpl-9", "object": "chat.completion", "choices": [], "usage": COUNTED}).encode()
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": f"{verb}_{thing}",
            "description": f"{verb.title()} a {thing} for the user who asks",
            "parameters": {"type": "object", "properties": {"id": {"type": "string"}}},
        },
    }
    for verb in ("create", "delete", "find", "print")
    for thing in ("invoice", "meeting", "ticket", "report")
]


def traceparent(span: str, flags: str = "01") -> str:
    return f"00-{TRACE}-{span}-{flags}"


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """On a busy machine, its exporter alone takes more than five seconds to start."""
    monkeypatch.setattr(export, "FLUSH_SECONDS", 60.0)
    with collecting() as got:
        yield got


@asynccontextmanager
async def traced(gateway_of: OpenGateway, collector: Collector, **options: Any) -> AsyncIterator[Gateway]:
    """A gateway that sends everything to the collector; it has, when the block ends."""
    otel = {"endpoint": collector.url} | options.pop("otel", {})
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_SERVICE_NAME": "traced-server"}
    servers = {"demo": {"command": sys.executable, "args": [SERVER], "env": env}}
    llm = {"policy": {"least_tools": 0, "least_tokens": 0, "way_back": False}}
    given: dict[str, Any] = {"otel": otel, "llm": llm, "servers": servers, "exposure": "eager", "start_wait": 60}
    async with gateway_of(**(given | options)) as gateway:
        yield gateway


async def chat(gateway: Gateway, text: str = "print the invoice", **headers: str) -> None:
    body = {"model": "gpt-5.4", "messages": [{"role": "user", "content": text}], "tools": TOOLS}
    answer = await gateway.http.post("/openai/v1/chat/completions", json=body, headers=headers)
    assert answer.status_code == 200, answer.text


async def client_of(gateway: Gateway) -> Raw:
    return await Raw(http=gateway.http, url="/mcp").begin()


def common(span: GotSpan) -> None:
    assert (span.scope, span.resource["service.name"]) == ("pegboard", "pegboard")
    assert span.resource["telemetry.sdk.language"] == "python"
    assert span.nanoseconds > 0


@pytest.mark.requirement("otel.conventions")
async def test_a_chat_request_has_the_attributes_that_the_genai_conventions_demand(
    gateway_of: OpenGateway, collector: Collector, upstream: ModelUpstream
) -> None:
    upstream.body = CHAT
    async with traced(gateway_of, collector, servers={}) as gateway:
        await chat(gateway, traceparent=traceparent(ROOT))
        [sent] = upstream.sent
    span, outer = collector.span("chat gpt-5.4"), collector.span("POST")
    common(span)
    assert (span.kind, outer.kind, span.failed) == ("client", "server", False)
    assert (outer.trace, outer.parent, span.parent) == (TRACE, ROOT, outer.id)
    assert sent.headers["traceparent"] == f"00-{TRACE}-{span.id}-01"
    host, port = upstream.url.removeprefix("http://").split(":")
    demanded = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-5.4",
        "gen_ai.request.stream": False,
        "gen_ai.response.id": "chatcmpl-9",
        "gen_ai.usage.input_tokens": 120,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.cache_read.input_tokens": 20,
        "server.address": host,
        "server.port": int(port),
    }
    assert {name: span.attributes.get(name) for name in demanded} == demanded
    assert "error.type" not in span.attributes
    of_http = {
        "http.request.method": "POST",
        "http.response.status_code": 200,
        "url.path": "/openai/v1/chat/completions",
        "url.scheme": "http",
    }
    assert {name: outer.attributes.get(name) for name in of_http} == of_http
    decision = collector.span("retrieval pegboard")
    assert decision.parent == outer.id
    assert decision.attributes["gen_ai.operation.name"] == "retrieval"
    assert decision.attributes["gen_ai.data_source.id"] == "pegboard"


async def test_a_failed_model_request_is_an_error_with_the_status_as_its_type(
    gateway_of: OpenGateway, collector: Collector, upstream: ModelUpstream
) -> None:
    upstream.mood = "error"
    async with traced(gateway_of, collector, servers={}) as gateway:
        body = {"model": "gpt-5.4", "messages": [{"role": "user", "content": "print"}], "tools": TOOLS}
        await gateway.http.post("/openai/v1/chat/completions", json=body)
    span, outer = collector.span("chat gpt-5.4"), collector.span("POST")
    assert span.failed
    assert outer.failed
    assert span.attributes["error.type"] == "529"


@pytest.mark.requirement("otel.conventions")
async def test_a_tool_call_has_the_attributes_that_the_mcp_conventions_demand(
    gateway_of: OpenGateway, collector: Collector
) -> None:
    async with traced(gateway_of, collector) as gateway:
        raw = await client_of(gateway)
        [name] = [each for each in await raw.names() if "echo" in each]
        result = await raw.result(
            "tools/call", name=name, arguments={"text": "hi"}, _meta={"traceparent": traceparent(CALLER)}
        )
        assert result["content"][0]["text"] == "echoed hi"
    server = collector.span(f"tools/call {name}", kind="server", scope="pegboard")
    client = collector.span("tools/call echo_text", kind="client", scope="pegboard")
    common(server)
    common(client)
    both = {"mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool"}
    of_server = {
        "gen_ai.tool.name": name,
        "mcp.protocol.version": "2025-11-25",
        "network.transport": "tcp",
        "network.protocol.name": "http",
    }
    of_client = {
        "gen_ai.tool.name": "echo_text",
        "mcp.protocol.version": "2026-07-28",
        "network.transport": "pipe",
        "pegboard.server": "demo",
    }
    for span, own in ((server, of_server), (client, of_client)):
        assert {each: span.attributes.get(each) for each in both | own} == both | own
        assert span.attributes["jsonrpc.request.id"]
        assert not {"error.type", "rpc.response.status_code"} & span.attributes.keys()
    assert server.attributes["network.protocol.version"] == "1.1"
    assert server.attributes["mcp.session.id"] not in ("", raw.session)


async def test_failures_of_tools_and_of_the_protocol_have_their_types(
    gateway_of: OpenGateway, collector: Collector
) -> None:
    async with traced(gateway_of, collector) as gateway:
        raw = await client_of(gateway)
        [name] = [each for each in await raw.names() if "fail" in each]
        assert (await raw.result("tools/call", name=name, arguments={"text": "x"}))["isError"]
        await raw.post("resources/read", {"uri": "https://ann:pw@a.example/b?key=1"})
    server = collector.span(f"tools/call {name}", kind="server", scope="pegboard")
    assert server.failed
    assert server.attributes["error.type"] == "tool_error"
    read = collector.span("resources/read", kind="server", scope="pegboard")
    assert read.failed
    assert read.attributes["error.type"] == read.attributes["rpc.response.status_code"]
    assert read.attributes["error.type"].startswith("-32")
    assert read.attributes["mcp.resource.uri"] == "https://a.example/b"


@pytest.mark.requirement("otel.conventions")
async def test_a_search_is_a_retrieval_below_the_clients_request(gateway_of: OpenGateway, collector: Collector) -> None:
    async with traced(gateway_of, collector, exposure="static") as gateway:
        raw = await client_of(gateway)
        await raw.call("search_tools", query="echo a text")
    server = collector.span("tools/call search_tools", kind="server")
    search = collector.span("retrieval pegboard")
    common(search)
    assert (search.parent, search.trace, search.kind) == (server.id, server.trace, "client")
    demanded = {"gen_ai.operation.name": "retrieval", "gen_ai.data_source.id": "pegboard"}
    assert {name: search.attributes.get(name) for name in demanded} == demanded
    assert search.attributes["pegboard.profile"] == "hybrid"
    assert not {"gen_ai.retrieval.query.text", "gen_ai.retrieval.documents"} & search.attributes.keys()


@pytest.mark.requirement("otel.one-trace")
async def test_one_trace_leads_from_the_model_request_through_the_mcp_gateway_to_the_server(
    gateway_of: OpenGateway, collector: Collector, upstream: ModelUpstream
) -> None:
    async with traced(gateway_of, collector) as gateway:
        await chat(gateway, traceparent=traceparent(ROOT), tracestate="vendor=1")
        raw = await client_of(gateway)
        [name] = [each for each in await raw.names() if "echo" in each]
        raw.headers["traceparent"] = traceparent(ROOT)
        meta = {"traceparent": traceparent(CALLER), "tracestate": "vendor=1"}
        await raw.result("tools/call", name=name, arguments={"text": "hi"}, _meta=meta)
        [sent] = upstream.sent
    model = collector.span("chat gpt-5.4")
    server = collector.span(f"tools/call {name}", kind="server", scope="pegboard")
    client = collector.span("tools/call echo_text", kind="client")
    behind = collector.span("tools/call echo_text", scope="mcp-python-sdk")
    assert {each.trace for each in (model, server, client, behind)} == {TRACE}
    assert (server.parent, client.parent, behind.parent) == (CALLER, server.id, client.id)
    assert server.links == [ROOT], "the context of HTTP is a link where the message has its own"
    assert behind.resource["service.name"] == "traced-server"
    assert sent.headers["tracestate"] == "vendor=1"


@pytest.mark.requirement("otel.conventions")
async def test_metrics_and_logs_tell_what_happened(
    gateway_of: OpenGateway, collector: Collector, upstream: ModelUpstream
) -> None:
    upstream.body = CHAT
    async with traced(gateway_of, collector) as gateway:
        await chat(gateway)
        raw = await client_of(gateway)
        [name] = [each for each in await raw.names() if "echo" in each]
        await raw.call(name, text="hi")
    [(of_model, point)] = collector.points("gen_ai.client.operation.duration")
    assert {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai"}.items() <= of_model.items()
    assert (point.count, collector.metrics["gen_ai.client.operation.duration"].unit) == (1, "s")
    assert list(point.explicit_bounds)[:2] == [0.01, 0.02]
    tokens = {labels["gen_ai.token.type"]: each.sum for labels, each in collector.points("gen_ai.client.token.usage")}
    assert tokens == {"input": 120, "output": 7}
    methods = {labels["mcp.method.name"] for labels, _ in collector.points("mcp.server.operation.duration")}
    assert {"initialize", "tools/list", "tools/call"} <= methods
    calls = [each for each in collector.points("mcp.client.operation.duration") if "gen_ai.tool.name" in each[0]]
    assert [labels["gen_ai.tool.name"] for labels, _ in calls] == ["echo_text"]
    assert [(labels, each.as_double) for labels, each in collector.points("pegboard.calls")] == [
        ({"server": "demo", "success": "true"}, 1.0)
    ]
    [(_, routed)] = collector.points("pegboard.route_seconds")
    assert sum(routed.bucket_counts) == routed.count == 1
    logs = {kind: (attributes, trace) for kind, attributes, trace in collector.logs}
    assert logs["pegboard.call_finished"][0]["pegboard.tool"] == "demo/echo_text"
    assert logs["pegboard.call_finished"][1] == collector.span("tools/call echo_text", kind="client").trace
    assert logs["pegboard.model_request_served"][0]["pegboard.model"] == "gpt-5.4"


@pytest.mark.requirement("otel.conventions", "otel.limited")
async def test_the_record_of_a_call_belongs_to_the_trace_of_its_own_call(
    gateway_of: OpenGateway, collector: Collector
) -> None:
    """Of calls at once, of which a client records every other one."""
    traces = [f"{number:032x}" for number in range(1, 21)]

    async def call(raw: Raw, name: str, trace: str, flags: str) -> None:
        meta = {"traceparent": f"00-{trace}-{CALLER}-{flags}"}
        await raw.result("tools/call", name=name, arguments={"text": trace}, _meta=meta)

    async with traced(gateway_of, collector) as gateway:
        raw = await client_of(gateway)
        [name] = [each for each in await raw.names() if "echo" in each]
        await asyncio.gather(*(call(raw, name, trace, f"0{at % 2}") for at, trace in enumerate(traces)))
    told = [trace for kind, _, trace in collector.logs if kind == "pegboard.call_finished"]
    assert sorted(told) == traces[1::2], "one of each that is recorded, and none of the others"


@pytest.mark.requirement("otel.nothing-secret")
async def test_no_secret_and_no_text_is_sent_and_content_only_if_it_is_asked_for(
    gateway_of: OpenGateway, collector: Collector, upstream: ModelUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLLECTOR_KEY", "canary-of-the-collector")
    secrets = {
        "authorization": "Bearer canary-bearer",
        "cookie": "session=canary-cookie",
        "x-api-key": "canary-key",
        "baggage": "user=canary-baggage",
        "tracestate": "canary=state",
    }
    otel = {"headers": {"x-collector": "${COLLECTOR_KEY}"}}
    upstream.body = CHAT.replace(b'"choices": []', b'"choices": [{"message": {"content": "canary-answer"}}]')
    async with traced(gateway_of, collector, otel=otel) as gateway:
        await chat(gateway, "canary-of-a-user", **secrets)
        await gateway.http.get("/openai/v1/models?key=canary-query")
        raw = await client_of(gateway)
        raw.headers |= secrets
        names = await raw.names()
        for name in [each for each in names if "echo" in each or "fail" in each]:
            await raw.result("tools/call", name=name, arguments={"text": "canary-argument"})
        await raw.post("tools/call", {"name": "echo", "arguments": ["canary-invalid"]})
        await raw.result("tools/call", name="search_tools", arguments={"query": "canary-search"})
    assert {each["x-collector"] for each in collector.headers if "x-collector" in each} == {"canary-of-the-collector"}
    found = b"\n".join(collector.raw)
    assert b"canary" not in found, found[max(0, found.index(b"canary") - 200) :][:300]
    assert raw.session is not None
    assert raw.session.encode() not in found


async def test_with_content_the_arguments_and_results_of_calls_are_recorded(
    gateway_of: OpenGateway, collector: Collector
) -> None:
    async with traced(gateway_of, collector, otel={"content": True}) as gateway:
        raw = await client_of(gateway)
        [name] = [each for each in await raw.names() if "echo" in each]
        await raw.call(name, text="hi")
    for kind in ("server", "client"):
        full = name if kind == "server" else "echo_text"
        span = collector.span(f"tools/call {full}", kind=kind, scope="pegboard")
        assert json.loads(span.attributes["gen_ai.tool.call.arguments"]) == {"text": "hi"}
        assert "echoed hi" in span.attributes["gen_ai.tool.call.result"]


async def test_a_trace_that_its_client_does_not_record_is_passed_on_and_not_sent(
    gateway_of: OpenGateway, collector: Collector, upstream: ModelUpstream
) -> None:
    async with traced(gateway_of, collector, servers={}, otel={"sample": 1.0}) as gateway:
        await chat(gateway, traceparent=traceparent(ROOT, "00"))
        [sent] = upstream.sent
    assert sent.headers["traceparent"].startswith(f"00-{TRACE}-")
    assert sent.headers["traceparent"].endswith("-00")
    assert collector.spans == []
    [(_, point)] = collector.points("gen_ai.client.operation.duration")
    assert point.count == 1, "metrics count every request"


@pytest.mark.requirement("otel.limited")
async def test_of_many_requests_so_many_are_traced_and_all_are_counted(
    gateway_of: OpenGateway, collector: Collector, upstream: ModelUpstream
) -> None:
    upstream.body, began = CHAT, time.monotonic()
    async with traced(gateway_of, collector, otel={"most_traces": 2}) as gateway:
        for _ in range(30):
            await chat(gateway)
        raw = await client_of(gateway)
        [name] = [each for each in await raw.names() if "echo" in each]
        [failing] = [each for each in await raw.names() if "fail" in each]
        for _ in range(30):
            await raw.call(name, text="hi")
        await raw.result("tools/call", name=failing, arguments={"text": "x"})
        await chat(gateway, traceparent=traceparent(ROOT))
        metrics = (await gateway.http.get("/metrics")).text
        allowed = 2 + 2 * (time.monotonic() - began)
    roots = [each for each in collector.spans if each.scope == "pegboard" and not each.parent]
    assert 1 <= len(roots) <= allowed
    traces = {each.trace for each in roots} | {TRACE}
    assert {each.trace for each in collector.spans if each.scope == "pegboard"} == traces
    assert collector.span("chat gpt-5.4", trace=TRACE).parent == collector.span("POST", trace=TRACE).id
    of_logs = {trace for kind, _, trace in collector.logs if kind == "pegboard.model_request_served"}
    assert of_logs <= traces, "what went well is told only of traces that are recorded"
    failed = [each for each in collector.logs if each[1].get("pegboard.success") is False]
    assert [(kind, attributes["pegboard.tool"]) for kind, attributes, _ in failed] == [
        ("pegboard.call_finished", "demo/fail_always")
    ]
    [(_, chats)] = collector.points("gen_ai.client.operation.duration")
    assert chats.count == 31
    calls = {
        labels["gen_ai.tool.name"]: point.count
        for labels, point in collector.points("mcp.client.operation.duration")
        if "gen_ai.tool.name" in labels
    }
    assert calls == {"echo_text": 30, "fail_always": 1}
    counted = {labels["recorded"]: each.as_int for labels, each in collector.points("pegboard.traces")}
    assert counted["true"] == len(roots)
    assert counted["false"] >= 62 - len(roots)
    assert f'pegboard_traces_total{{recorded="true"}} {counted["true"]}.0' in metrics


@pytest.mark.requirement("otel.away")
async def test_a_collector_that_is_not_there_delays_neither_requests_nor_the_end(
    gateway_of: OpenGateway, upstream: ModelUpstream
) -> None:
    dead = Collector(url=f"http://127.0.0.1:{free_port()}")
    async with traced(gateway_of, dead, servers={}) as gateway:
        for _ in range(5):
            await chat(gateway)
        ending = time.monotonic()
    assert len(upstream.sent) == 5
    assert time.monotonic() - ending < 60


async def test_a_collector_that_refuses_is_said_until_it_does_not(
    gateway_of: OpenGateway, collector: Collector
) -> None:
    collector.refuses = True
    async with traced(gateway_of, collector, servers={}) as gateway:

        def degraded() -> Any:
            return gateway.server.readiness.report()[1]["degraded"]

        await chat(gateway)
        await until(lambda: degraded() == ["The collector of OpenTelemetry does not take what it is sent."])
        collector.refuses = False
        await chat(gateway)
        await until(lambda: degraded() == [])


async def test_without_otel_a_clients_trace_passes_through_unchanged(
    gateway_of: OpenGateway, upstream: ModelUpstream
) -> None:
    async with gateway_of() as gateway:
        await chat(gateway, traceparent=traceparent(ROOT), tracestate="vendor=1")
        [sent] = upstream.sent
    assert (sent.headers["traceparent"], sent.headers["tracestate"]) == (traceparent(ROOT), "vendor=1")
