"""One server under supervision: connect, list, call, and when it breaks, say why and try again."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, Literal

import anyio
import mcp_types as types
from mcp import Client, MCPError
from mcp.client._transport import TransportStreams
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.dispatcher import ProgressFnT
from pydantic import TypeAdapter, ValidationError

from pegboard.catalog.ingest import tools_from_list_result
from pegboard.errors import ConfigError, PegboardError, UpstreamError
from pegboard.model import JsonObject, Server, ServerName, Tool
from pegboard.server_spec import ServerSpec
from pegboard.upstreams.transport import HttpError, StderrTail, Watched, open_transport

LOGGER = logging.getLogger(__name__)

State = Literal["starting", "ready", "unhealthy", "stopped"]

ANY_OBJECT: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 60.0
RELIST_PAUSE = 0.5
QUOTED_CHARACTERS = 80
WORDS_CHARACTERS = 1000
RESTART_PATIENCE = 5.0
"""Seconds a call waits for a server that is being restarted."""
STEADY_SECONDS = 30.0
"""A connection that lasted this long starts its pauses anew."""
MOST_PAGES = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """How a server is doing. ``latency_ms`` is from start to a complete listing."""

    name: str
    state: State
    reason: str = ""
    tools: int = 0
    latency_ms: float | None = None
    protocol: str = ""


class Upstream:
    """A server's connection, kept and shared by all callers (M16), and the tools it listed.

    ``changed`` is awaited after every change of state or tools. Run `run` as a task of its own: the connection
    lives and dies in it.
    """

    def __init__(
        self,
        spec: ServerSpec,
        changed: Callable[[Upstream], Awaitable[None]],
        *,
        connect_timeout: float,
        call_timeout: float,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.spec = spec
        self.server = Server(name=ServerName(spec.name), description=spec.description)
        self.tools: tuple[Tool, ...] = ()
        self.status = ServerStatus(name=spec.name, state="starting")
        self._changed = changed
        self._connect_timeout = connect_timeout
        self._call_timeout = call_timeout
        self._environment = dict(os.environ if environment is None else environment)
        self._client: Client | None = None
        self._watched: Watched | None = None
        self._stderr = StderrTail()
        self._relist = asyncio.Event()
        self._ready = asyncio.Event()

    async def run(self) -> None:
        """Connect, serve until the connection breaks, pause, again; until cancelled."""
        pause = FIRST_PAUSE
        while True:
            started = time.monotonic()
            reason, final = await self._serve_once()
            steady = time.monotonic() - started > STEADY_SECONDS
            await self._set(state="unhealthy", reason=reason)
            if final:
                return
            pause = FIRST_PAUSE if steady else pause
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def call(
        self,
        name: str,
        arguments: JsonObject | None,
        *,
        meta: Mapping[str, Any] | None = None,
        progress: ProgressFnT | None = None,
    ) -> dict[str, Any]:
        """The server's result, untouched (M7). Raises MCPError as the server sent it, UpstreamError for a broken one.

        Cancelling the call cancels it at the server.
        """
        params = types.CallToolRequestParams(name=name, arguments=None if arguments is None else dict(arguments))
        if meta:
            params.meta = dict(meta)  # type: ignore[assignment]  # any JSON object is a legal _meta
        request = types.CallToolRequest(params=params)
        try:
            return await self._send(request, progress)
        except _SessionExpired:
            self._break()
        try:
            return await self._send(request, progress)
        except _SessionExpired as error:
            raise UpstreamError(
                self.spec.name, f"Server {self.spec.name!r} forgets its sessions at once.", remedy="Try again later."
            ) from error

    async def _send(self, request: types.CallToolRequest, progress: ProgressFnT | None) -> dict[str, Any]:
        client = await self._connected()
        try:
            return await _untouched(client, request, self._call_timeout, progress)
        except MCPError as error:
            raise self._explained(error) from error
        except ValidationError as error:
            raise UpstreamError(
                self.spec.name,
                f"Server {self.spec.name!r} answered {request.params.name!r} with something that is no tool result.",
                remedy="Report it to the server's authors.",
            ) from error

    async def _connected(self) -> Client:
        """The client, waiting a moment for a server that is being restarted."""
        if self.status.state == "starting":
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ready.wait(), RESTART_PATIENCE)
        if self._client is None:
            raise UpstreamError(
                self.spec.name,
                f"Server {self.spec.name!r} is {self.status.state}: {self.status.reason or 'no answer yet'}",
                remedy="Try again later, or use a tool of another server.",
            )
        return self._client

    def _explained(self, error: MCPError) -> Exception:
        """A broken connection or a time-out as our own error; what the server itself said stays as it is (M8)."""
        match error.code, error.message:
            case types.CONNECTION_CLOSED, "Connection closed":
                self._break()
                return UpstreamError(
                    self.spec.name,
                    f"Server {self.spec.name!r} closed the connection during the call.",
                    remedy="It is being restarted; whether the call took effect is not known.",
                )
            case types.REQUEST_TIMEOUT, "Request 'tools/call' timed out":
                return UpstreamError(
                    self.spec.name,
                    f"Server {self.spec.name!r} did not answer within {self._call_timeout:g} s.",
                    remedy="Raise call_timeout, or ask for less.",
                )
            case types.INVALID_REQUEST, "Session terminated":
                return _SessionExpired()
        return error

    def _break(self) -> None:
        """Give the connection up; the supervising task makes a new one."""
        if self._client is not None and self._watched is not None:
            self._client = None
            self._ready.clear()
            self.status = replace(self.status, state="starting", reason="The connection broke.")
            self._watched.ended.set()

    async def _serve_once(self) -> tuple[str, bool]:
        """One connection, from beginning to end: why it ended, and whether trying again is pointless."""
        self._stderr, self._watched = StderrTail(), None
        started = time.monotonic()
        late = asyncio.get_running_loop().call_later(self._connect_timeout, self._say_that_it_hangs)
        try:
            spec = self.spec.expanded(self._environment)
            client = Client(
                self._transport(spec),
                cache=None,
                message_handler=self._on_message,
                client_info=types.Implementation(name="pegboard", version=version("pegboard")),
            )
            with anyio.CancelScope(deadline=anyio.current_time() + self._connect_timeout) as limit:
                async with client:
                    await self._list(client)
                    limit.deadline = math.inf
                    late.cancel()
                    self._client = client
                    self._ready.set()
                    latency = (time.monotonic() - started) * 1000
                    await self._set(state="ready", reason="", latency_ms=latency, protocol=str(client.protocol_version))
                    await self._attend(client)
            return self._because(self._too_late if limit.cancelled_caught else "The connection broke."), False
        except ConfigError as error:
            return str(error), True
        except PegboardError as error:
            return self._redacted(str(error)), False
        except (MCPError, OSError, HttpError, ValidationError) as error:
            return self._because(_described(error)), False
        except ExceptionGroup as group:
            return self._because(" ".join(_described(each) for each in _leaves(group))), False
        except Exception as error:  # noqa: BLE001 - whatever one server provokes, the others live
            return self._because(_described(error)), False
        finally:
            late.cancel()
            self._client = None
            self._ready.clear()

    def _say_that_it_hangs(self) -> None:
        """At once, and not only when it has been ended, which takes seconds."""
        self._announcement = asyncio.ensure_future(self._set(state="unhealthy", reason=self._because(self._too_late)))

    @property
    def _too_late(self) -> str:
        return f"No answer within {self._connect_timeout:g} s."

    @asynccontextmanager
    async def _transport(self, spec: ServerSpec) -> AsyncIterator[TransportStreams]:
        async with open_transport(spec, self._environment, self._stderr) as (read, write):
            self._watched = Watched(read)
            yield self._watched, write

    async def _attend(self, client: Client) -> None:
        """Until the connection breaks: list again when the server says that its tools changed."""
        watched = self._watched
        if watched is None:
            return
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._relist_on_change, client)
            if client.session.discover_result:
                tasks.start_soon(self._listen, client)
            await watched.ended.wait()
            tasks.cancel_scope.cancel()

    async def _relist_on_change(self, client: Client) -> None:
        """A listing that fails leaves the old tools; a storm of changes is a listing now and then (M18)."""
        while await self._relist.wait():
            self._relist.clear()
            before = self.tools, self.server
            try:
                await self._list(client)
            except (MCPError, ValidationError, PegboardError) as error:
                LOGGER.warning("Server %s could not be listed again: %s", self.spec.name, self._redacted(str(error)))
            if (self.tools, self.server) != before:
                await self._set()
            await asyncio.sleep(RELIST_PAUSE)

    async def _listen(self, client: Client) -> None:
        """A server of the 2026 era announces changes on a stream of its own; a lost stream is opened again."""
        capabilities = client.server_capabilities.tools
        if capabilities is None or not capabilities.list_changed:
            return
        pause = FIRST_PAUSE
        while True:
            try:
                async with client.listen(tools_list_changed=True) as subscription:
                    pause = FIRST_PAUSE
                    async for _ in subscription:
                        self._relist.set()
            except (MCPError, SubscriptionLost) as error:
                if isinstance(error, MCPError) and error.code == types.METHOD_NOT_FOUND:
                    return
                LOGGER.info("Server %s ended its announcements: %s", self.spec.name, error)
            self._relist.set()
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _on_message(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._relist.set()

    async def _list(self, client: Client) -> None:
        """Every page of the listing; an empty page is not the end, and an empty cursor is a cursor (M9)."""
        pages: list[JsonObject] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            request = types.ListToolsRequest(params=types.PaginatedRequestParams(cursor=cursor))
            page = await _untouched(client, request, self._connect_timeout)
            pages.append(page)
            cursor = page.get("nextCursor")
            if cursor is None:
                break
        info = client.server_info
        self.server = Server(
            name=ServerName(self.spec.name),
            description=self.spec.description or (info.title if info and info.title else ""),
            instructions=client.instructions or "",
            version=info.version if info else "",
        )
        self.tools = tuple(tools_from_list_result(self.spec.name, pages))

    async def _set(
        self,
        *,
        state: State | None = None,
        reason: str | None = None,
        latency_ms: float | None = None,
        protocol: str | None = None,
    ) -> None:
        old = self.status
        given = {"state": state, "reason": reason, "latency_ms": latency_ms, "protocol": protocol}
        changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        self.status = replace(old, tools=len(self.tools), **changes)
        if self.status.state == "unhealthy" and self.status.reason != old.reason:
            LOGGER.warning("Server %s is unhealthy: %s", self.spec.name, self.status.reason)
        await self._changed(self)

    def _because(self, what: str) -> str:
        """What happened, with the last words of the server's stderr, and without its secrets."""
        garbage = self._redacted(self._watched.garbage if self._watched else "")[:QUOTED_CHARACTERS]
        said = f" It printed to stdout what is not JSON-RPC: {garbage}." if garbage else ""
        words = self._redacted(self._stderr.text)[-WORDS_CHARACTERS:]
        last = f" Its last words: {words}" if words else ""
        return f"{self._redacted(what)}{said}{last}"

    def _redacted(self, text: str) -> str:
        """M30: nothing that the configuration keeps secret leaves in a reason."""
        for secret in sorted(self.spec.secrets(self._environment), key=len, reverse=True):
            text = text.replace(secret, "***")
        return text


class _SessionExpired(Exception):  # noqa: N818
    """An HTTP server forgot our session: connect again and retry once (M14)."""


async def _untouched(
    client: Client, request: types.ClientRequest, seconds: float, progress: ProgressFnT | None = None
) -> dict[str, Any]:
    """The result as the dictionary it arrived as (M7)."""
    return await client.session.send_request(
        request,
        ANY_OBJECT,  # type: ignore[type-var]  # a plain dictionary is validated by its adapter all the same
        request_read_timeout_seconds=seconds,
        progress_callback=progress,
    )


def _described(error: BaseException) -> str:
    """One sentence. A closed connection before the first answer is a program that ended."""
    if isinstance(error, MCPError):
        closed = error.code == types.CONNECTION_CLOSED
        return "It ended, or closed the connection, before it answered." if closed else f"{error.message}."
    return f"{type(error).__name__}: {error}."


def _leaves(group: BaseExceptionGroup[Any]) -> list[BaseException]:
    leaves: list[BaseException] = []
    for each in group.exceptions:
        leaves.extend(_leaves(each) if isinstance(each, BaseExceptionGroup) else [each])
    return leaves
