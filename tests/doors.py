"""The HTTP door for tests: served in this process, and clients that say no more JSON-RPC than they must."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import httpx2
import mcp_types as types
import uvicorn
from mcp import Client

from pegboard.gateways.mcp.gateway.gateway import Gateway
from pegboard.gateways.mcp.gateway.host import Host
from pegboard.gateways.mcp.transport.http import HttpDoor
from pegboard.gateways.serve import IDLE_SECONDS, open_peers
from pegboard.settings import Settings
from processes import until

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
ACCEPT = "application/json, text/event-stream"
META = ["list_tool_categories", "search_tools", "describe_tools", "invoke_tool"]


@asynccontextmanager
async def door_on(host: Host) -> AsyncIterator[str]:
    """The address of a door before this host, on a real socket; with the others on its store, if it has any."""
    async with AsyncExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=512))
        peers = await open_peers(stack, host, Settings(), listening.getsockname()[1])
        door = HttpDoor(host, peers=peers)
        options: dict[str, Any] = {"lifespan": "off", "log_config": None, "timeout_graceful_shutdown": 2}
        options["timeout_keep_alive"] = IDLE_SECONDS  # as `pegboard serve`: clients are the ones that close
        server = uvicorn.Server(uvicorn.Config(door, **options))
        async with door.running():
            serving = asyncio.create_task(server._serve([listening]))
            await until(lambda: server.started)
            try:
                yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
            finally:
                door.hang_up()
                server.should_exit = True
                await serving


async def at_rest(gateway: Gateway) -> None:
    """The tools are indexed, bursts of changes are over, and what was to be told is told."""
    view = gateway.view
    await until(lambda: (view._indexing is None or view._indexing.done()) and not gateway.announcer._resting)


@dataclass
class Answer:
    status: int
    message: dict[str, Any] = field(default_factory=dict)
    heard: list[str] = field(default_factory=list)
    headers: Any = None


@dataclass
class Raw:
    """A client of one era. ``heard`` are the notifications that came with its answers."""

    http: httpx2.AsyncClient
    url: str
    name: str = "opencode"
    session: str | None = None
    modern: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    capabilities: dict[str, Any] = field(default_factory=dict)
    heard: list[str] = field(default_factory=list)
    ids: Any = field(default_factory=itertools.count)

    async def begin(self) -> Self:
        """Shake hands."""
        hello: dict[str, Any] = {"protocolVersion": LEGACY, "capabilities": self.capabilities}
        hello |= {"clientInfo": {"name": self.name, "version": "1"}}
        answer = await self.post("initialize", hello)
        assert answer.status == 200, answer
        self.session = answer.headers["mcp-session-id"]
        begun = await self.post("notifications/initialized", None)
        assert begun.status == 202, begun
        return self

    async def post(self, method: str, params: dict[str, Any] | None) -> Answer:
        """One message, and what came back, whatever it is."""
        message, headers = self.prepared(method, params)
        found = await self.http.post(self.url, json=message, headers=headers)
        messages = _messages(found)
        answers = [each for each in messages if "method" not in each]
        heard = [each["method"] for each in messages if "method" in each]
        self.heard += heard
        assert len(answers) <= 1
        assert not answers or found.status_code != 200 or answers[0]["id"] == message["id"], "an answer that got lost"
        return Answer(found.status_code, answers[0] if answers else {}, heard, found.headers)

    def prepared(self, method: str, params: dict[str, Any] | None) -> tuple[dict[str, Any], dict[str, str]]:
        """A message and its headers."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        headers = {"accept": ACCEPT} | self.headers
        if self.modern:
            prefix = "io.modelcontextprotocol"
            client = {"name": self.name, "version": "1"}
            about = {"protocolVersion": MODERN, "clientInfo": client, "clientCapabilities": self.capabilities}
            meta = (params or {}).get("_meta", {}) | {f"{prefix}/{key}": value for key, value in about.items()}
            params = (params or {}) | {"_meta": meta}
            headers |= {"mcp-protocol-version": MODERN, "mcp-method": method}
            named = params.get("name") or (params.get("uri") if method == "resources/read" else None)
            headers |= {"mcp-name": named} if named else {}
        elif self.session is not None:
            headers |= {"mcp-session-id": self.session, "mcp-protocol-version": LEGACY}
        if params is not None:
            message["params"] = params
        if not method.startswith("notifications/"):
            message["id"] = next(self.ids)
        return message, headers

    async def result(self, method: str, **params: Any) -> dict[str, Any]:
        answer = await self.post(method, params)
        assert answer.status == 200, answer
        return dict(answer.message["result"])

    async def names(self) -> list[str]:
        return [tool["name"] for tool in (await self.result("tools/list"))["tools"]]

    async def call(self, name: str, /, **arguments: Any) -> str:
        """The text that a tool answers."""
        result = await self.result("tools/call", name=name, arguments=arguments)
        return str(result["content"][0]["text"])

    async def ask(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """The JSON that a meta-tool answers."""
        return dict(json.loads(await self.call(name, **arguments)))

    async def search(self, query: str, **more: Any) -> list[str]:
        """The names that a search finds."""
        return [tool["name"] for tool in (await self.ask("search_tools", query=query, **more))["tools"]]

    async def end(self) -> int:
        assert self.session is not None
        headers = {"mcp-session-id": self.session, "mcp-protocol-version": LEGACY, "accept": ACCEPT}
        return int((await self.http.delete(self.url, headers=headers)).status_code)

    @asynccontextmanager
    async def stream(self) -> AsyncIterator[list[str]]:
        """The methods of what comes on the session's own stream, from now on."""
        assert self.session is not None
        heard: list[str] = []
        about = {"mcp-session-id": self.session, "mcp-protocol-version": LEGACY, "accept": "text/event-stream"}
        headers = self.headers | about

        async with self.http.stream("GET", self.url, headers=headers, timeout=None) as answer:
            assert answer.status_code == 200, answer.status_code

            async def read() -> None:
                async for line in answer.aiter_lines():
                    heard.extend(json.loads(data)["method"] for data in _data([line]))

            reading = asyncio.create_task(read())
            try:
                yield heard
            finally:
                reading.cancel()
                await asyncio.wait([reading])


class Listener:
    """A client of the handshake era, and how often it was told that its list changed."""

    def __init__(self, target: Any, name: str = "opencode") -> None:
        self.told = 0
        info = types.Implementation(name=name, version="1")
        self.client = Client(target, mode="legacy", client_info=info, message_handler=self._hear, cache=None)

    async def _hear(self, message: Any) -> None:
        self.told += isinstance(message, types.ToolListChangedNotification)

    async def search(self, query: str, limit: int = 1, **more: Any) -> list[str]:
        answer = await self.ask("search_tools", query=query, limit=limit, **more)
        return [tool["name"] for tool in answer["tools"]]

    async def ask(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        return dict(json.loads(await self.call(name, **arguments)))

    async def call(self, name: str, /, **arguments: Any) -> str:
        result = await self.client.call_tool(name, arguments)
        assert not result.is_error, result
        return str(result.content[0].text)  # type: ignore[union-attr]

    async def listed(self) -> list[str]:
        """What is listed beside the meta-tools."""
        names = [tool.name for tool in (await self.client.list_tools()).tools]
        assert names[:4] == META
        return names[4:]


def _messages(answer: httpx2.Response) -> list[dict[str, Any]]:
    if answer.headers.get("content-type", "").startswith("text/event-stream"):
        return list(map(json.loads, _data(answer.text.splitlines())))
    if answer.headers.get("content-type", "").startswith("application/json") and answer.content:
        return [answer.json()]
    return []


def _data(lines: Iterable[str]) -> Iterator[str]:
    """The JSON in lines of an event stream."""
    return (line.removeprefix("data: ") for line in lines if line.startswith("data: {"))


async def until_listed(client: Raw, user: str) -> None:
    """The first listing waits for the user's server as long as `start_wait`, once per process."""
    for _ in range(200):
        if any(name.endswith(f"_of_{user}") for name in await client.names()):
            return
    raise AssertionError(f"nothing is listed for {user}")
