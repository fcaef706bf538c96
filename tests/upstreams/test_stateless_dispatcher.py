"""Requests to servers without sessions, over connections that all users share."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp import MCPError

from pegboard.model import ToolId
from pegboard.settings.server_spec import ServerSpec
from pegboard.upstreams import Fleet, NotCarriedOut, http_transport
from pegboard.upstreams.http_pools import HttpPools
from pegboard.upstreams.http_transport import NO_ANSWER, NOT_REACHED, ServerClient
from pegboard.upstreams.limits import UpstreamLimits
from pegboard.upstreams.stateless_dispatcher import MOST_OPEN, StatelessDispatcher, stateless
from processes import until
from raw_http import Arrived, answer, listening

JSON = b"content-type: application/json"
EVENTS = b"content-type: text/event-stream"
LIMITS = UpstreamLimits(result=10_000)


class Token(httpx2.Auth):
    def __init__(self, token: str) -> None:
        self.token = token

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response]:
        request.headers["authorization"] = self.token
        yield request


def result(arrived: Arrived, **said: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": json.loads(arrived.body)["id"], "result": said}).encode()


@dataclass
class Server:
    """``heads`` are those of the requests, ``writers`` the connections on which they came."""

    heads: list[bytes] = field(default_factory=list)
    writers: set[asyncio.StreamWriter] = field(default_factory=set)
    more: Callable[[Arrived, asyncio.StreamWriter], Awaitable[None]] | None = None

    async def handle(self, arrived: Arrived, writer: asyncio.StreamWriter) -> None:
        self.heads.append(arrived.head.lower())
        self.writers.add(writer)
        if self.more is not None:
            await self.more(arrived, writer)
        else:
            writer.write(answer(result(arrived, tools=[]), JSON, b"set-cookie: whose=%d" % len(self.heads)))


@asynccontextmanager
async def dispatcher(url: str, pools: HttpPools, token: str = "") -> AsyncIterator[StatelessDispatcher]:
    async with ServerClient({}, LIMITS, auth=Token(token), pools=pools) as http:
        yield stateless(url, http, LIMITS, pools)


@pytest.fixture
async def pools() -> AsyncIterator[HttpPools]:
    made = HttpPools()
    yield made
    await made.aclose()


@pytest.mark.requirement("023.users")
async def test_two_users_share_a_connection_and_neither_tokens_nor_cookies(pools: HttpPools) -> None:
    server = Server()
    async with listening(server.handle) as address:
        for token in ("anns", "bobs"):
            async with dispatcher(f"http://{address}/mcp", pools, token) as sent:
                await sent.send_raw_request("tools/list", {})
    assert len(server.writers) == 1
    assert [b"authorization: anns" in head for head in server.heads] == [True, False]
    assert [b"authorization: bobs" in head for head in server.heads] == [False, True]
    assert not any(b"cookie:" in head for head in server.heads)


@pytest.mark.requirement("023.users")
async def test_an_answer_that_a_server_sends_twice_is_not_taken_for_another_users(pools: HttpPools) -> None:
    async def twice(arrived: Arrived, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(result(arrived, of=len(server.heads)), JSON) * 2)

    server = Server(more=twice)
    async with listening(server.handle) as address:
        url = f"http://{address}/mcp"
        async with dispatcher(url, pools) as ann, dispatcher(url, pools) as bob:
            assert await ann.send_raw_request("tools/list", {}) == {"of": 1}
            [came] = await asyncio.gather(bob.send_raw_request("tools/list", {}), return_exceptions=True)
            assert came == {"of": 2} or "answers another request" in str(came)


async def test_the_end_of_the_time_and_of_the_caller_close_the_request(pools: HttpPools) -> None:
    gone: list[bool] = []

    async def silent(arrived: Arrived, writer: asyncio.StreamWriter) -> None:
        came.set()
        gone.append(await arrived.gone())
        if len(gone) == 2:
            both.set()

    came, both = asyncio.Event(), asyncio.Event()
    server = Server(more=silent)
    async with listening(server.handle) as address, dispatcher(f"http://{address}/mcp", pools) as sent:
        with pytest.raises(MCPError) as caught:
            await sent.send_raw_request("tools/list", {}, {"timeout": 0.05})
        assert caught.value.error.code == types.REQUEST_TIMEOUT
        came.clear()
        task = asyncio.create_task(sent.send_raw_request("tools/call", {}))
        await came.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(both.wait(), 5)
    assert gone == [True, True]
    assert not sent.ended.is_set()


async def test_what_a_server_says_before_its_answer_is_told_and_what_it_asks_is_refused(pools: HttpPools) -> None:
    refusals: list[Any] = []
    refused = asyncio.Event()

    async def talkative(arrived: Arrived, writer: asyncio.StreamWriter) -> None:
        body = json.loads(arrived.body)
        if "method" not in body:
            refusals.append(body)
            refused.set()
            writer.write(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
            return
        token = body["params"]["_meta"]["progressToken"]
        progress = {"progressToken": token, "progress": 1, "total": 2, "message": "half"}
        said = [
            {"jsonrpc": "2.0", "method": "notifications/progress", "params": progress},
            {"jsonrpc": "2.0", "id": 7, "method": "roots/list"},
            {"jsonrpc": "2.0", "id": body["id"], "result": {"done": True}},
        ]
        writer.write(answer(b"".join(b"data: %s\n\n" % json.dumps(each).encode() for each in said), EVENTS))

    reports: list[tuple[float, float | None, str | None]] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        reports.append((progress, total, message))

    server = Server(more=talkative)
    async with listening(server.handle) as address, dispatcher(f"http://{address}/mcp", pools) as sent:
        sent._session = Listening()  # type: ignore[assignment]
        assert await sent.send_raw_request("tools/call", {}, {"on_progress": report}) == {"done": True}
        await asyncio.wait_for(refused.wait(), 5)
    assert reports == [(1.0, 2.0, "half")]
    assert refusals[0]["id"] == 7
    assert refusals[0]["error"]["code"] == types.METHOD_NOT_FOUND
    assert sent.heard == 3


async def test_that_a_server_cannot_be_reached_is_an_error_of_the_request(pools: HttpPools) -> None:
    doubts: list[bool] = []
    async with dispatcher("http://127.0.0.1:9/mcp", pools) as sent:
        with pytest.raises(httpx2.ConnectError):  # it is not open yet: the connection reports why
            await sent.send_raw_request("tools/list", {})
        sent._opened, sent.doubt = True, lambda: doubts.append(True)
        for _ in range(2):
            with pytest.raises(MCPError, match=NOT_REACHED) as caught:
                await sent.send_raw_request("tools/list", {})
            assert caught.value.error.code == types.CONNECTION_CLOSED
    assert not sent.ended.is_set()
    assert isinstance(sent.unreached, httpx2.ConnectError)
    assert doubts == [True, True]


@dataclass
class Slow:
    """A server that answers a call when it is ``free``, and reads no large request. ``came``: a call is there.
    ``shakes_hands``: it is of the handshake era."""

    shakes_hands: bool = False
    free: asyncio.Event = field(default_factory=asyncio.Event)
    came: asyncio.Event = field(default_factory=asyncio.Event)
    server: asyncio.Server | None = None

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        self.server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        host, port = self.server.sockets[0].getsockname()
        try:
            yield f"http://{host}:{port}/mcp"
        finally:
            self.free.set()
            self.server.close()

    def refuse(self) -> None:
        """Take no more connections; those that are open go on."""
        assert self.server is not None
        self.server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request for each connection."""
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"POST"):
            writer.write(b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            writer.close()
            return
        size = int(head.lower().partition(b"content-length:")[2].split()[0])
        if size > LARGE:
            await self.free.wait()
        else:
            message = json.loads(await reader.readexactly(size))
            if message["method"] == "tools/call":
                self.came.set()
                await self.free.wait()
            said: dict[str, Any] = {"result": ABOUT.get(message["method"], {"content": []}) | ENVELOPE}
            if self.shakes_hands and message["method"] == "server/discover":
                said = {"error": {"code": types.METHOD_NOT_FOUND, "message": "Method not found"}}
            whole = {"jsonrpc": "2.0", "id": message.get("id")} | said
            writer.write(answer(json.dumps(whole).encode(), JSON, b"connection: close"))
        writer.close()


LARGE = 1_000_000
ENVELOPE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
ABOUT: dict[str, dict[str, Any]] = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "slow", "version": "1"},
    },
    "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}},
    "tools/list": {"tools": [{"name": "wait", "inputSchema": {"type": "object"}}]},
}


@pytest.mark.parametrize("what", ["is not read", "is refused"])
async def test_a_request_that_cannot_be_sent_fails_no_other(
    pools: HttpPools, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(http_transport, "CONNECT_SECONDS", 2.0)
    slow = Slow()
    async with slow.listening() as url, dispatcher(url, pools) as sent:
        sent._opened = True
        innocent = asyncio.create_task(sent.send_raw_request("tools/call", {}))
        await slow.came.wait()
        if what == "is refused":
            slow.refuse()
        padding = "x" * (40 * LARGE if what == "is not read" else 1)
        with pytest.raises(MCPError, match=NO_ANSWER if what == "is not read" else NOT_REACHED):
            await sent.send_raw_request("tools/list", {"padding": padding})
        assert not innocent.done()
        slow.free.set()
        assert (await innocent)["content"] == []
    assert not sent.ended.is_set()


@pytest.mark.parametrize("shakes_hands", [False, True])
async def test_a_server_that_cannot_be_reached_keeps_its_calls_and_is_connected_anew_after_them(
    fleet_of: Callable[..., Fleet], shakes_hands: bool
) -> None:
    slow, wait = Slow(shakes_hands=shakes_hands), ToolId("slow", "wait")
    async with (
        slow.listening() as url,
        fleet_of(ServerSpec(name="slow", url=url), health_timeout=60.0) as fleet,
    ):
        await fleet.settled(60)
        assert fleet.status()[0].state == "ready"
        innocent = asyncio.create_task(fleet.call(wait, {}))
        await slow.came.wait()
        slow.refuse()
        with pytest.raises(NotCarriedOut, match="could not be reached"):
            await fleet.call(wait, {})
        await asyncio.sleep(0.1)  # for the check
        assert fleet.status()[0].state == "ready"
        slow.free.set()
        assert (await innocent)["content"] == []
        await until(lambda: fleet.status()[0].state == "unhealthy")
        assert "ConnectError" in fleet.status()[0].reason


@pytest.mark.parametrize("said", ["notifications/message", "roots/list"])
async def test_no_more_is_read_of_a_stream_whose_messages_are_not_taken(pools: HttpPools, said: str) -> None:
    """Whether they are passed to a client that does not read, or refused to a server that does not answer."""
    free, messages = asyncio.Event(), 5 * MOST_OPEN

    async def flooding(arrived: Arrived, writer: asyncio.StreamWriter) -> None:
        body = json.loads(arrived.body)
        if "method" not in body:
            await free.wait()
            writer.write(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
            return
        numbers = [{"id": at} if said == "roots/list" else {"params": {"data": at}} for at in range(messages)]
        flood = [{"jsonrpc": "2.0", "method": said} | each for each in numbers]
        flood.append({"jsonrpc": "2.0", "id": body["id"], "result": {"done": True}})
        writer.write(answer(b"".join(b"data: %s\n\n" % json.dumps(each).encode() for each in flood), EVENTS))

    server = Server(more=flooding)
    async with listening(server.handle) as address, dispatcher(f"http://{address}/mcp", pools) as sent:
        session = SlowSession(free)
        sent._session = session  # type: ignore[assignment]
        call = asyncio.create_task(sent.send_raw_request("tools/call", {}))
        await until(lambda: len(sent._tasks) >= MOST_OPEN)
        await asyncio.sleep(0.2)
        assert len(sent._tasks) == MOST_OPEN
        assert not call.done()
        free.set()
        assert await asyncio.wait_for(call, 120) == {"done": True}
        await until(lambda: not sent._tasks)
    assert sent.heard == messages + 1
    assert session.heard == (list(range(messages)) if said == "notifications/message" else [])


class SlowSession:
    """A session whose client takes nothing until it is ``free``."""

    def __init__(self, free: asyncio.Event) -> None:
        self.free = free
        self.heard: list[int] = []

    def _intercept_notification(self, _method: str, _params: object) -> bool:
        return False

    async def _on_notify(self, _context: object, _method: str, params: dict[str, Any]) -> None:
        await self.free.wait()
        self.heard.append(params["data"])


class Listening:
    """A session that is told of nothing else."""

    def _intercept_notification(self, _method: str, _params: object) -> bool:
        return True
