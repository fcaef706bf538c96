"""Clients that stop reading or hang up: what is theirs waits or ends, and what is others' is answered."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import subprocess
import sys
import termios
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from doors import ACCEPT, LEGACY, MODERN, Raw
from faults import FAULTY, PIPES, MakeFaulty, descriptors, over
from pegboard.gateways.mcp.gateway.host import Host
from processes import descendants, until

OpenDoor = Callable[..., AbstractAsyncContextManager[tuple[str, Host]]]

CALLS = 30
LARGE = 400_000
FULL_PIPE = 60_000


@pytest.mark.requirement("M22")
async def test_a_client_on_stdio_that_stops_reading_for_a_while_loses_nothing(tmp_path: Path) -> None:
    """Far more is answered than a pipe holds; then the client reads again."""
    config = tmp_path / "servers.json"
    config.write_text(json.dumps({"mcpServers": {"faulty": {"command": sys.executable, "args": [FAULTY]}}}))
    command = [sys.executable, "-m", "pegboard", "mcp", "--config", str(config), "--no-attach"]
    folders = {"PEGBOARD_CACHE_DIR": str(tmp_path), "PEGBOARD_STATE_DIR": str(tmp_path)}
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=dict(os.environ) | folders | {"PEGBOARD_PROFILE": "keyword"},
        limit=2 * LARGE,
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def send(method: str, params: dict[str, Any], number: int | None) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params} | ({} if number is None else {"id": number})
        process.stdin.write(json.dumps(message).encode() + b"\n")  # type: ignore[union-attr]

    async def read() -> dict[str, Any]:
        async with asyncio.timeout(60):
            return dict(json.loads(await process.stdout.readline()))  # type: ignore[union-attr]

    try:
        hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "slow", "version": "1"}}
        send("initialize", hello, 0)
        assert (await read())["id"] == 0
        send("notifications/initialized", {}, None)
        for number in range(1, CALLS + 1):
            send("tools/call", {"name": "big", "arguments": {"n": LARGE + number}}, number)
        transport = process.stdout._transport  # type: ignore[attr-defined]
        transport.pause_reading()
        await until(lambda: unread(transport.get_extra_info("pipe").fileno()) > FULL_PIPE)
        transport.resume_reading()
        sizes = {}
        while len(sizes) < CALLS:
            answer = await read()
            if "id" in answer:
                sizes[answer["id"]] = len(answer["result"]["content"][0]["text"])
        assert sizes == {number: LARGE + number for number in range(1, CALLS + 1)}
        servers = descendants(process.pid)
        process.stdin.close()
        assert await asyncio.wait_for(process.wait(), 20) == 0
        assert not [pid for pid in servers if Path(f"/proc/{pid}").exists()]
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@over(PIPES[0])
@pytest.mark.parametrize("modern", [False, True], ids=["legacy", "modern"])
@pytest.mark.requirement("M15")
async def test_clients_on_http_that_stop_reading_hold_up_nobody_and_leave_nothing_behind(
    open_door: OpenDoor, faulty: MakeFaulty, modern: bool
) -> None:
    async with open_door(faulty()) as (url, host), httpx2.AsyncClient(trust_env=False, timeout=60) as http:
        other = Raw(http, url, modern=True)
        assert await other.call("echo", text="first") == "first"
        before = descriptors()
        stuck = [await stopped(http, url, "big", modern=modern, n=10_000_000) for _ in range(5)]
        answers = await asyncio.gather(*(other.call("echo", text=str(at)) for at in range(50)))
        assert answers == [str(at) for at in range(50)]
        for writer in stuck:
            writer.transport.abort()
        await until(lambda: under_way(host) == 0)
        await until(lambda: descriptors() <= before + 50)
        assert await other.call("echo", text="last") == "last"


@over(PIPES[0])
@pytest.mark.requirement("M22")
async def test_a_client_of_2026_that_hangs_up_ends_its_call(open_door: OpenDoor, faulty: MakeFaulty) -> None:
    async with open_door(faulty()) as (url, host), httpx2.AsyncClient(trust_env=False, timeout=60) as http:
        gone = await stopped(http, url, "hang", modern=True)
        await until(lambda: under_way(host) == 1)
        gone.transport.abort()
        await until(lambda: under_way(host) == 0)


@over(PIPES[0])
@pytest.mark.requirement("M22")
async def test_a_session_that_ends_ends_its_calls(open_door: OpenDoor, faulty: MakeFaulty) -> None:
    async with open_door(faulty()) as (url, host), httpx2.AsyncClient(trust_env=False, timeout=60) as http:
        client = await Raw(http, url).begin()
        call = asyncio.create_task(client.call("hang"))
        await until(lambda: under_way(host) == 1)
        assert await client.end() == 200
        await until(lambda: under_way(host) == 0)
        call.cancel()
        await asyncio.wait([call])


@over(PIPES[0])
@pytest.mark.requirement("M22")
async def test_the_call_of_a_client_of_the_handshake_era_that_hung_up_ends_with_its_time(
    open_door: OpenDoor, faulty: MakeFaulty
) -> None:
    """To hang up is not to cancel there (MCP 2025-11-25, transports): it may come back for its answer."""
    doors = open_door(faulty(), call_timeout=1.0)
    async with doors as (url, host), httpx2.AsyncClient(trust_env=False, timeout=60) as http:
        gone = await stopped(http, url, "hang", modern=False)
        await until(lambda: under_way(host) == 1)
        gone.transport.abort()
        await until(lambda: under_way(host) == 0)


def unread(pipe: int) -> int:
    """Bytes that wait in a pipe."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def under_way(host: Host) -> int:
    """Calls that servers work on."""
    return sum(each.upstream._calls for each in host.fleet._servers.values())


async def stopped(
    http: httpx2.AsyncClient, url: str, tool: str, *, modern: bool, **arguments: Any
) -> asyncio.StreamWriter:
    """A client that has called a tool and reads nothing of what comes."""
    params: dict[str, Any] = {"name": tool, "arguments": arguments}
    headers = {"accept": ACCEPT, "content-type": "application/json", "host": "localhost"}
    if modern:
        about = {"protocolVersion": MODERN, "clientInfo": {"name": "slow", "version": "1"}, "clientCapabilities": {}}
        params["_meta"] = {f"io.modelcontextprotocol/{key}": value for key, value in about.items()}
        headers |= {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": tool}
    else:
        session = (await Raw(http, url).begin()).session
        headers |= {"mcp-protocol-version": LEGACY, "mcp-session-id": str(session)}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    headers["content-length"] = str(len(body))
    address = httpx2.URL(url)
    _, writer = await asyncio.open_connection(address.host, address.port, limit=1024)
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"POST {address.path} HTTP/1.1\r\n{head}\r\n".encode() + body)
    await writer.drain()
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    return writer
