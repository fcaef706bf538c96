"""Requests of revision 2026-07-28 are answered as the SDK answers them, and as soon."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Message, Scope

from pegboard.gateways.mcp.transport import modern_requests
from pegboard.gateways.mcp.transport.handshake_sessions import ResumableSessions
from pegboard.gateways.mcp.transport.modern_requests import MirroredArguments
from processes import until

VERSION = "2026-07-28"
KNOWN = TransportSecuritySettings(allowed_hosts=["here"], allowed_origins=["http://here"])
PLAIN = {"type": "object", "properties": {"text": {"type": "string"}}}
MIRRORED = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
SCHEMAS = {"echo": PLAIN, "ship": MIRRORED}
LONE_SURROGATE = "half a pair: \ud83d"
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "tester", "version": "1"},
}


class Office:
    """A server's tools. ``waiting`` is set while `wait` and `pay` wait, ``gave_up`` once it was cancelled, ``paid``
    when what must not be is done."""

    def __init__(self) -> None:
        self.waiting, self.gave_up, self.go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.paid = False

    async def list_tools(self, _ctx: Any, _params: Any) -> dict[str, Any]:
        tools = [{"name": name, "inputSchema": schema} for name, schema in SCHEMAS.items()]
        return {"resultType": "complete", "tools": tools, "ttlMs": 1, "cacheScope": "private"}

    async def call_tool(self, ctx: Any, params: types.CallToolRequestParams) -> dict[str, Any]:
        match params.name:
            case "refuse":
                raise MCPError(code=types.INVALID_PARAMS, message="not so", data={"why": 1})
            case "break":
                raise RuntimeError("inside")
            case "tell":
                await ctx.session.send_notification(types.ToolListChangedNotification(), related_request_id="1")
            case "wait":
                self.waiting.set()
                try:
                    await self.go_on.wait()
                except asyncio.CancelledError:
                    self.gave_up.set()
                    raise
            case "pay":
                with anyio.CancelScope(shield=True):
                    self.waiting.set()
                    await self.go_on.wait()
                    self.paid = True
        text = (params.arguments or {}).get("text", "done")
        return {"resultType": "complete", "content": [{"type": "text", "text": text}], "isError": False}

    def server(self) -> Server[Any]:
        return Server(
            "office",
            on_list_tools=self.list_tools,  # type: ignore[arg-type]
            on_call_tool=self.call_tool,  # type: ignore[arg-type]
            get_tool_input_schema=MirroredArguments(SCHEMAS.get),
        )


@dataclass(frozen=True, kw_only=True)
class Answer:
    status: int
    kind: str
    body: bytes

    @property
    def said(self) -> Any:
        return json.loads(self.body) if self.body and self.kind == "application/json" else self.body


class Exchange:
    """One request as a server of HTTP hands it over. ``leave`` is what a client does that goes away."""

    def __init__(self, body: bytes, headers: Sequence[tuple[str, str]], method: str = "POST") -> None:
        named = [(name.encode(), value.encode()) for name, value in headers]
        self.scope: Scope = {"type": "http", "method": method, "path": "/mcp", "query_string": b"", "headers": named}
        self._messages: asyncio.Queue[Message] = asyncio.Queue()
        self._messages.put_nowait({"type": "http.request", "body": body, "more_body": False})
        self.sent: list[Message] = []

    async def receive(self) -> Message:
        return await self._messages.get()

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    def is_read(self) -> bool:
        return self._messages.empty()

    def leave(self) -> None:
        self._messages.put_nowait({"type": "http.disconnect"})

    async def at(self, app: ASGIApp) -> Answer:
        await app(self.scope, self.receive, self.send)
        return self.answer

    @property
    def answer(self) -> Answer:
        start, *rest = self.sent
        headers = dict(start["headers"])
        body = b"".join(each.get("body", b"") for each in rest)
        assert headers.get(b"content-length", str(len(body)).encode()) == str(len(body)).encode()
        kind = headers.get(b"content-type", b"").decode().partition(";")[0]
        return Answer(status=start["status"], kind=kind, body=body)


def asking(method: str, params: Mapping[str, Any], *, meta: Any = META, **message: Any) -> bytes:
    request = {"jsonrpc": "2.0", "id": 7, "method": method, "params": {**params, "_meta": meta}} | message
    return json.dumps(request).encode()


def calling(name: str, *, meta: Any = META, **arguments: Any) -> bytes:
    return asking("tools/call", {"name": name, "arguments": arguments}, meta=meta)


def headers_of(body: bytes, **changed: str | None) -> list[tuple[str, str]]:
    """What the SDK's client sends with it; None leaves a header out."""
    try:
        message = json.loads(body)
    except ValueError:
        message = {}
    message = message if isinstance(message, dict) else {}
    usual = {
        "host": "here",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": VERSION,
        "mcp-method": message.get("method"),
        "mcp-name": message.get("params", {}).get("name"),
    }
    every = usual | {name.replace("_", "-"): value for name, value in changed.items()}
    return [(name, value) for name, value in every.items() if value is not None]


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[ASGIApp, Office]]:
    office = Office()
    manager = ResumableSessions(office.server(), security_settings=KNOWN)
    async with manager.run():
        yield manager.modern_requests(), office


@asynccontextmanager
async def serving_as_the_sdk() -> AsyncIterator[ASGIApp]:
    manager = StreamableHTTPSessionManager(Office().server(), security_settings=KNOWN)
    async with manager.run():
        yield manager.handle_request


ECHO, SHIP = calling("echo", text="hello"), calling("ship", region="north")
OTHER = {**META, "io.modelcontextprotocol/protocolVersion": "2025-01-01"}
CASES: Mapping[str, tuple[bytes, list[tuple[str, str]], str]] = {
    "call": (ECHO, headers_of(ECHO), "POST"),
    "umlauts": (calling("echo", text="größe \u2028"), headers_of(calling("echo")), "POST"),
    "half a surrogate pair": (calling("echo", text=LONE_SURROGATE), headers_of(calling("echo")), "POST"),
    "list": (asking("tools/list", {}), headers_of(asking("tools/list", {})), "POST"),
    "text as id": (asking("tools/list", {}, id="a"), headers_of(asking("tools/list", {})), "POST"),
    "no such method": (asking("tools/fly", {}), headers_of(asking("tools/fly", {})), "POST"),
    "wrong arguments": (asking("tools/call", {"name": 1}), headers_of(asking("tools/call", {}), mcp_name="1"), "POST"),
    "refused": (calling("refuse"), headers_of(calling("refuse")), "POST"),
    "broken": (calling("break"), headers_of(calling("break")), "POST"),
    "header mirrors": (SHIP, headers_of(SHIP, mcp_param_region="north"), "POST"),
    "header differs": (SHIP, headers_of(SHIP, mcp_param_region="south"), "POST"),
    "header is missing": (SHIP, headers_of(SHIP), "POST"),
    "header of no argument": (ECHO, headers_of(ECHO, mcp_param_region="south"), "POST"),
    "method differs": (ECHO, headers_of(ECHO, mcp_method="tools/list"), "POST"),
    "name differs": (ECHO, headers_of(ECHO, mcp_name="ship"), "POST"),
    "name twice": (ECHO, [*headers_of(ECHO), ("mcp-name", "ship")], "POST"),
    "another version within": (calling("echo", meta=OTHER), headers_of(ECHO), "POST"),
    "unknown version": (ECHO, headers_of(ECHO, mcp_protocol_version="2030-01-01"), "POST"),
    "no envelope": (calling("echo", meta={}), headers_of(ECHO), "POST"),
    "another host": (ECHO, headers_of(ECHO, host="there"), "POST"),
    "another origin": (ECHO, headers_of(ECHO, origin="http://there"), "POST"),
    "no JSON wanted": (ECHO, headers_of(ECHO, accept="text/event-stream"), "POST"),
    "no stream wanted": (ECHO, headers_of(ECHO, accept="application/json"), "POST"),
    "another content": (ECHO, headers_of(ECHO, content_type="text/plain"), "POST"),
    "no JSON": (b"{", headers_of(b"{"), "POST"),
    "a batch": (b"[]", headers_of(b"[]"), "POST"),
    "no id that is one": (asking("tools/list", {}, id=None), headers_of(asking("tools/list", {})), "POST"),
    "notification": (b'{"jsonrpc":"2.0","method":"notifications/initialized"}', headers_of(b"{}"), "POST"),
    "another verb": (b"", headers_of(b""), "GET"),
}


@pytest.mark.parametrize("case", CASES)
async def test_each_request_is_answered_as_the_sdk_answers_it(case: str) -> None:
    body, headers, method = CASES[case]
    async with serving_as_the_sdk() as theirs, serving() as (ours, _):
        expected = await asyncio.wait_for(Exchange(body, headers, method).at(theirs), 30)
        found = await asyncio.wait_for(Exchange(body, headers, method).at(ours), 30)

    assert (found.status, found.kind, found.said) == (expected.status, expected.kind, expected.said)


async def test_what_is_said_before_the_answer_comes_first_on_a_stream() -> None:
    async with serving() as (app, _):
        answer = await asyncio.wait_for(Exchange(calling("tell"), headers_of(calling("tell"))).at(app), 30)

    events = [json.loads(each.partition(b"data: ")[2]) for each in answer.body.split(b"\r\n\r\n") if each]
    assert (answer.status, answer.kind) == (200, "text/event-stream")
    assert [each.get("method", each.get("id")) for each in events] == ["notifications/tools/list_changed", 7]
    assert events[1]["result"]["content"][0]["text"] == "done"


async def test_the_stream_of_a_silent_request_is_kept_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modern_requests, "PING_SECONDS", 0.01)
    exchange = Exchange(calling("wait"), headers_of(calling("wait")))
    async with serving() as (app, office), asyncio.timeout(30):
        running = asyncio.create_task(exchange.at(app))
        await until(lambda: modern_requests.PING in [each.get("body") for each in exchange.sent])
        office.go_on.set()
        answer = await running

    assert answer.kind == "text/event-stream"
    assert b'"text":"done"' in answer.body
    assert exchange.sent[-1]["more_body"] is False


async def test_a_client_that_goes_away_ends_its_request() -> None:
    exchange = Exchange(calling("wait"), headers_of(calling("wait")))
    async with serving() as (app, office), asyncio.timeout(30):
        running = asyncio.create_task(app(exchange.scope, exchange.receive, exchange.send))
        await office.waiting.wait()
        exchange.leave()
        await office.gave_up.wait()
        await running

    assert exchange.sent == []


async def test_a_client_that_goes_away_does_not_break_into_what_is_shielded() -> None:
    exchange = Exchange(calling("pay"), headers_of(calling("pay")))
    async with serving() as (app, office), asyncio.timeout(30):
        running = asyncio.create_task(app(exchange.scope, exchange.receive, exchange.send))
        await office.waiting.wait()
        exchange.leave()
        await until(exchange.is_read)
        for _ in range(10):
            await asyncio.sleep(0)
        office.go_on.set()
        await running

    assert office.paid


async def test_what_is_said_after_the_answer_is_dropped() -> None:
    exchange = Exchange(b"", [])
    answer = modern_requests.Answering(exchange.send, 7)

    await answer.ended({"done": True})
    await answer.before({"jsonrpc": "2.0", "method": "notifications/message"})

    assert exchange.answer.said == {"jsonrpc": "2.0", "id": 7, "result": {"done": True}}


def test_a_schema_is_searched_once_and_shown_only_where_arguments_are_mirrored() -> None:
    class Counted(dict[str, Any]):
        searched = 0

        def __str__(self) -> str:
            Counted.searched += 1
            return super().__str__()

    schemas = {"echo": Counted(PLAIN), "ship": Counted(MIRRORED)}
    shown = MirroredArguments(schemas.get)

    assert [shown(name) for name in ("echo", "ship", "echo", "ship", "fly")] == [None, MIRRORED, None, MIRRORED, None]
    assert Counted.searched == 2
    schemas["echo"] = Counted(MIRRORED)
    assert shown("echo") == MIRRORED
