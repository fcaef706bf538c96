"""The bridge between real parts: the SDK's client on stdio, and its low-level server on HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp_types import JSONRPCRequest

from pegboard.gateways.mcp.attach.reconnect import Reconnecting, reconnecting_client
from pegboard.gateways.mcp.attach.relay import Relay
from raw_http import OK, Arrived, listening
from serves import Serve

CODE = """
import asyncio, sys
from pegboard.gateways.mcp.attach.bridge import bridge_stdio
asyncio.run(bridge_stdio(sys.argv[1], patience=float(sys.argv[2])))
"""
HELLO = {
    "jsonrpc": "2.0",
    "id": "one",
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}

Connect = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture
async def serve(tmp_path: Path) -> AsyncIterator[Serve]:
    made = Serve(tmp_path / "running")
    await made.start()
    yield made
    made.kill()


@pytest.fixture
def connect(serve: Serve, era: str) -> Connect:
    """The SDK's client of a bridge that is a process of its own."""

    @asynccontextmanager
    async def opened(**options: Any) -> AsyncIterator[Client]:
        parameters = StdioServerParameters(
            command=sys.executable, args=["-c", CODE, serve.url, "120"], env=dict(os.environ)
        )
        async with Client(parameters, mode=era, cache=None, **options) as client:
            yield client

    return opened


async def all_tools(client: Client) -> list[types.Tool]:
    page = await client.list_tools()
    tools = list(page.tools)
    while page.next_cursor is not None:
        page = await client.list_tools(cursor=page.next_cursor)
        tools += page.tools
    return tools


def text(result: types.CallToolResult) -> str:
    (part,) = result.content
    assert isinstance(part, types.TextContent)
    return part.text


async def test_lists_pages_calls_and_errors_pass_unchanged(connect: Connect, serve: Serve, era: str) -> None:
    async with connect() as client, Client(serve.url, mode=era, cache=None) as direct:
        assert client.protocol_version == direct.protocol_version
        assert await all_tools(client) == await all_tools(direct)
        calls = {"add": {"a": 1, "b": 2.5}, "odd": {"p": {"x": None}, "big": 2**70}, "picture": {}}
        for name, arguments in calls.items():
            assert await client.call_tool(name, arguments) == await direct.call_tool(name, arguments)
        with pytest.raises(MCPError) as caught:
            await client.call_tool("raises", {})
        assert caught.value.error == types.ErrorData(code=-32050, message="custom protocol error", data={"why": "test"})
        assert (await client.call_tool("fails", {})).is_error


async def test_progress_reaches_the_call_that_makes_it(connect: Connect) -> None:
    async with connect() as client:
        await all_tools(client)
        seen: list[str | None] = []

        async def report(_progress: float, _total: float | None, message: str | None) -> None:
            seen.append(message)

        assert text(await client.call_tool("progress", {}, progress_callback=report)) == "done"
        assert seen == ["step 1", "step 2", "step 3"]


async def test_a_cancelled_call_ends_and_the_next_one_is_answered(connect: Connect) -> None:
    async with connect() as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await client.call_tool("slow", {})
        assert text(await client.call_tool("echo", {"text": "still here"})) == "still here"


async def test_calls_at_the_same_time_do_not_wait_for_each_other_or_cross(connect: Connect) -> None:
    async with connect() as client:
        slow = asyncio.create_task(client.call_tool("slow", {}))
        answers = await asyncio.gather(*(client.call_tool("echo", {"text": f"{n}" * 1000}) for n in range(30)))
        assert [text(answer) for answer in answers] == [f"{n}" * 1000 for n in range(30)]
        slow.cancel()


async def test_a_line_of_megabytes_passes_both_ways(connect: Connect) -> None:
    async with connect() as client:
        assert text(await client.call_tool("echo", {"text": "é" * 1_500_000})) == "é" * 1_500_000


async def test_a_changed_list_is_told_as_each_era_does(connect: Connect, era: str) -> None:
    told = asyncio.Event()

    async def hear(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            told.set()

    async with connect(message_handler=hear) as client, asyncio.timeout(240):
        if era == "auto":
            async with client.listen(tools_list_changed=True) as changes:
                await client.call_tool("grow", {})
                await anext(aiter(changes))
            return
        while not told.is_set():  # the standing stream opens when it likes
            await client.call_tool("grow", {})
            await asyncio.sleep(0.01)


async def test_arguments_that_belong_into_headers_are_put_there(connect: Connect) -> None:
    async with connect() as client:
        await all_tools(client)
        assert text(await client.call_tool("mirrored", {"region": "Zürich"})) == "Zürich"


@pytest.mark.parametrize("era", ["legacy"])
async def test_a_question_reaches_the_client_and_its_answer_the_server(connect: Connect) -> None:
    async def tell(_context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"word": params.message})

    async with connect(elicitation_callback=tell) as client:
        assert text(await client.call_tool("ask", {})) == "A word?"


async def test_a_call_that_the_serve_dies_in_is_answered_and_the_next_serve_goes_on(
    connect: Connect, serve: Serve
) -> None:
    """In the handshake era the next serve does not know the session: the bridge opens it again."""
    async with connect() as client, asyncio.timeout(240):
        for _ in range(2):
            with pytest.raises(MCPError):
                await client.call_tool("die", {})
            serve.kill()
            restart = asyncio.create_task(serve.start())
            answers = await asyncio.gather(*(client.call_tool("echo", {"text": f"{n}"}) for n in range(5)))
            await restart
            assert [text(answer) for answer in answers] == list("01234")


@pytest.mark.parametrize("era", ["legacy"])
async def test_a_changed_list_is_told_after_the_serve_was_started_again(connect: Connect, serve: Serve) -> None:
    told = asyncio.Event()

    async def hear(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            told.set()

    async with connect(message_handler=hear) as client, asyncio.timeout(240):
        for _ in range(2):
            serve.kill()
            await serve.start()
            told.clear()
            while not told.is_set():  # the standing stream is opened again within a second
                await client.call_tool("grow", {})
                await asyncio.sleep(0.05)


def start_bridge(url: str) -> subprocess.Popen[bytes]:
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen([sys.executable, "-c", CODE, url, "1"], env=dict(os.environ), **pipes)


def say(process: subprocess.Popen[bytes], line: bytes) -> None:
    assert process.stdin
    process.stdin.write(line + b"\n")
    process.stdin.flush()


async def answer(process: subprocess.Popen[bytes]) -> Any:
    assert process.stdout
    return json.loads(await asyncio.to_thread(process.stdout.readline))


async def test_a_bridge_whose_serve_stays_away_answers_what_waits_and_ends(serve: Serve) -> None:
    bridge = start_bridge(serve.url)
    say(bridge, json.dumps(HELLO).encode())
    assert (await answer(bridge))["id"] == "one"
    serve.kill()
    say(bridge, b'{"jsonrpc": "2.0", "id": 2, "method": "tools/list"}')

    assert (await answer(bridge))["error"]["message"].startswith("`pegboard serve` at 127.0.0.1")
    stdin, bridge.stdin = bridge.stdin, None
    _, stderr = await asyncio.to_thread(bridge.communicate, timeout=60)
    assert bridge.returncode == 1
    assert b"--no-attach" in stderr
    assert stdin
    stdin.close()


async def test_what_is_no_message_is_answered_and_the_bridge_ends_with_its_client(serve: Serve) -> None:
    bridge = start_bridge(serve.url)
    say(bridge, b"hello?")

    assert (await answer(bridge))["error"]["code"] == types.PARSE_ERROR
    _, stderr = await asyncio.to_thread(bridge.communicate, timeout=60)
    assert (bridge.returncode, stderr) == (0, b"")


async def test_a_client_that_says_everything_at_once_and_no_more_is_answered(serve: Serve) -> None:
    bridge = start_bridge(serve.url)
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "x"}}}
    lines = "".join(json.dumps(message) + "\n" for message in (HELLO, ready, call))
    stdout, _ = await asyncio.to_thread(bridge.communicate, lines.encode(), timeout=60)

    assert [json.loads(line)["id"] for line in stdout.splitlines()] == ["one", 2]
    assert bridge.returncode == 0


async def test_the_session_ends_with_its_client(serve: Serve) -> None:
    """So that the serve need not wait for it to expire."""
    bridge = start_bridge(serve.url)
    say(bridge, json.dumps(HELLO).encode())
    await answer(bridge)
    assert serve.health()["sessions"] == 1
    await asyncio.to_thread(bridge.communicate, timeout=60)

    assert (bridge.returncode, serve.health()["sessions"]) == (0, 0)


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_a_request_about_a_task_names_it_in_a_header(method: str) -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    request = JSONRPCRequest(jsonrpc="2.0", id=1, method=method, params={"taskId": "t-1", "_meta": meta})
    said = {key.lower(): value for key, value in (Relay().headers(request) or {}).items()}
    assert said == {"mcp-protocol-version": "2026-07-28", "mcp-method": method, "mcp-name": "t-1"}


async def test_what_a_client_says_does_not_wait_for_its_many_calls() -> None:
    many, all_there, go_on = 120, asyncio.Event(), asyncio.Event()
    there = 0

    async def handle(_arrived: Arrived, writer: asyncio.StreamWriter) -> None:
        nonlocal there
        there += 1
        if there == many:
            all_there.set()
        await go_on.wait()
        writer.write(OK + b"content-length: 2\r\n\r\n{}")

    async with listening(handle) as address, reconnecting_client(1.0) as http:
        calls = [asyncio.create_task(http.post(f"http://{address}/mcp", content=b"{}")) for _ in range(many)]
        async with asyncio.timeout(60):
            await all_there.wait()
        go_on.set()
        assert {response.status_code for response in await asyncio.gather(*calls)} == {200}


async def test_a_session_that_is_opened_again_watches_and_logs_as_its_client_had_asked() -> None:
    asked: list[tuple[str, str, Any]] = []
    sessions, known = iter(("first", "second")), {"first"}

    def serve(request: httpx2.Request) -> httpx2.Response:
        message, session = json.loads(request.content), request.headers.get("mcp-session-id")
        if message["method"] == "initialize":
            return httpx2.Response(200, headers={"mcp-session-id": next(sessions)}, json={})
        if session not in known:
            return httpx2.Response(404)
        asked.append((session, message["method"], message.get("params")))
        return httpx2.Response(200, json={})

    async def said(method: str, **params: str) -> None:
        headers = {} if method == "initialize" else {"mcp-session-id": "first"}
        answer = await http.post("http://serve/mcp", json={"method": method, "params": params}, headers=headers)
        assert answer.status_code == 200

    async with httpx2.AsyncClient(transport=Reconnecting(httpx2.MockTransport(serve), 1.0)) as http:
        await said("initialize")
        await said("resources/subscribe", uri="doc://a")
        await said("resources/subscribe", uri="doc://b")
        await said("resources/unsubscribe", uri="doc://b")
        await said("logging/setLevel", level="error")
        known.clear()
        known.add("second")
        asked.clear()
        await said("tools/list")

    wishes = [("second", "resources/subscribe", {"uri": "doc://a"}), ("second", "logging/setLevel", {"level": "error"})]
    assert [method for _, method, _ in asked] == [
        "notifications/initialized",
        *(method for _, method, _ in asked[1:3]),
        "tools/list",
    ]
    assert sorted(asked[1:3], key=str) == sorted(wishes, key=str)
