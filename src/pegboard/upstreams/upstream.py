"""One server under supervision: started when it is needed, called, and when it breaks, said why and tried again."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.shared.dispatcher import ProgressFnT
from pydantic import ValidationError

from pegboard.errors import UpstreamError
from pegboard.model import JsonObject, Server, ServerName, Tool, ToolId
from pegboard.seams import Listing
from pegboard.server_spec import ServerSpec
from pegboard.upstreams.asking import in_rounds
from pegboard.upstreams.conditions import Conditions
from pegboard.upstreams.connection import Connection, Ended, mode_of
from pegboard.upstreams.explained import AnswerLost, ConnectionLost, NotCarriedOut, SessionExpired, failed_call
from pegboard.upstreams.limits import Room
from pegboard.upstreams.listing import server_of, tools_of
from pegboard.upstreams.remembered import Remembered
from pegboard.upstreams.status import ServerStatus

LOGGER = logging.getLogger(__name__)

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 60.0
HEAD_START = 1.0
"""Seconds that a gateway has to answer its first requests before servers whose tools are known take the processor."""
RESTART_PATIENCE = 5.0
"""Seconds a call waits for a server that is being restarted."""
STEADY_SECONDS = 30.0
"""A connection that lasted this long starts its pauses anew."""


class Upstream:
    """A server's connection, kept and shared by all callers (M16), and the tools it listed last.

    ``changed`` is awaited after every change of state or tools, ``heard`` with what it says of its resources and
    prompts. Run `run` as a task of its own: the connection lives and dies in it. A lazy server whose tools are known
    has a connection only while it is called, or watches a resource.
    """

    def __init__(
        self,
        spec: ServerSpec,
        changed: Callable[[Upstream], Awaitable[None]],
        conditions: Conditions,
        heard: Callable[[ServerName, types.ServerNotification], Awaitable[None]],
    ) -> None:
        self.spec = spec
        self.server = Server(name=ServerName(spec.name), description=spec.description)
        self.tools: tuple[Tool, ...] = ()
        self.status = ServerStatus(name=spec.name, state="starting")
        self.capabilities: JsonObject = {}
        self._changed = changed
        self._heard = heard
        self._watched: Counter[str] = Counter()
        self._level: types.LoggingLevel | None = None
        self._conditions = conditions
        self._lazy = conditions.lazy if spec.lazy is None else spec.lazy
        self._remembered = Remembered(conditions.definitions, spec, conditions.environment)
        self._listed = False
        self._opened = False
        self._protocol = ""
        self._connection: Connection | None = None
        self._settled = asyncio.Event()
        self._back_soon = False
        self._returned = asyncio.Event()
        self._wanted = asyncio.Event()
        self._wanted.set()
        self._calls = 0
        self._waiting = 0
        self._last_used = conditions.clock.monotonic()

    def room(self) -> Room:
        """For one list of this server's."""
        return Room(self._conditions.limits)

    async def run(self) -> None:
        """Connect, serve until the connection ends, pause, again; a lazy server when it is called. Until cancelled."""
        await self._recall()
        pause = FIRST_PAUSE
        while True:
            await self._wanted.wait()
            started = time.monotonic()
            ended = await self._serve_once()
            if ended.at_once:
                continue
            if ended.opened and self._waiting:
                LOGGER.warning("Server %s is started again: %s", self.spec.name, ended.reason)
                self.status = replace(self.status, state="starting")
            elif self._rests:
                self._wanted.clear()
                await self._set(state="idle" if ended.opened else "unhealthy", reason=ended.reason)
            else:
                pause = FIRST_PAUSE if time.monotonic() - started > STEADY_SECONDS else pause
                self._back_soon = ended.opened and pause == FIRST_PAUSE
                await self._set(state="unhealthy", reason=ended.reason)
                if ended.final:
                    return
                await asyncio.sleep(pause)
                self._be_back()
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

        Cancelling the call cancels it at the server. What it reports comes before its result.
        """
        params = types.CallToolRequestParams(name=name, arguments=None if arguments is None else dict(arguments))
        if meta:
            params.meta = dict(meta)  # type: ignore[assignment]  # any JSON object is a legal _meta
        return await self.request(types.CallToolRequest(params=params), progress)

    async def request(self, request: types.ClientRequest, progress: ProgressFnT | None = None) -> dict[str, Any]:
        """The result of any request, as that of a call; what the server asks goes to the request's `ORIGIN`."""

        async def sent() -> dict[str, Any]:
            with suppress(SessionExpired):
                return await self._send(request, progress)
            return await self._send(request, progress)

        with self._in_use():
            return await in_rounds(request, sent)

    async def watch(self, uri: str) -> None:
        """Hear when a resource changes, on later connections too. Raises MCPError where the server will not say."""
        if not self._watched[uri]:
            with self._in_use():
                await (await self._connected()).watch(uri)
        self._watched[uri] += 1

    async def unwatch(self, uri: str) -> None:
        """As often as it was watched; otherwise nothing happens."""
        if self._watched[uri] > 1:
            self._watched[uri] -= 1
        elif self._watched.pop(uri, 0) and self._connection is not None:
            await self._connection.unwatch(uri)

    async def set_level(self, level: types.LoggingLevel) -> None:
        """How much a server of the handshake era is to log; one that does not run is told when it does."""
        self._level = level
        if self._connection is not None:
            await self._say_level(self._connection)

    async def tell_roots_changed(self) -> None:
        """Another client is there than before, or it has other roots; a server that does not run is not started."""
        if self._connection is not None:
            await self._connection.tell_roots_changed()

    def inherit(self, before: Upstream) -> None:
        """The tools of the same server under its old configuration, until it lists its own."""
        self.tools = before.tools
        self.server = replace(before.server, description=self.spec.description or before.server.description)
        self.status = replace(self.status, tools=len(self.tools))

    async def stop_if_idle(self) -> None:
        """End a lazy server that nobody has called for ``idle_stop`` seconds. Its tools stay."""
        limit = self._conditions.idle_stop
        if self._connection is None or self._calls or self._watched or not self._rests or not limit:
            return
        if self._conditions.clock.monotonic() - self._last_used >= limit:
            self._wanted.clear()
            self._give_up(self._connection, agreed=True)
            await self._set(state="idle", reason="")

    @property
    def unused_for(self) -> float:
        """Seconds since its last call ended; 0 while one is under way."""
        return 0.0 if self._calls else self._conditions.clock.monotonic() - self._last_used

    def stop(self) -> None:
        """From now on every call is refused; cancelling `run` ends those under way."""
        self._connection = None
        self.status = replace(self.status, state="stopped", reason="Its configuration was changed or removed.")
        self._be_back()
        self._settled.set()

    @contextmanager
    def _in_use(self) -> Iterator[None]:
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1
            self._last_used = self._conditions.clock.monotonic()

    async def _send(self, request: types.ClientRequest, progress: ProgressFnT | None) -> dict[str, Any]:
        connection, seconds = await self._connected(), self._conditions.call_timeout
        if isinstance(request, types.CallToolRequest):
            self._conditions.admit(ToolId(self.spec.name, request.params.name))
        try:
            return await connection.call(request, seconds, progress)
        except (MCPError, ValidationError) as error:
            failure = failed_call(error, self.spec.name, _what(request), seconds)
            if isinstance(failure, ConnectionLost) and self.status.state == "stopped":
                failure = UpstreamError(
                    self.spec.name,
                    f"Server {self.spec.name!r} was stopped during the call: {self.status.reason}",
                    remedy="Whether the call took effect is not known; look for its tools again.",
                )
            elif isinstance(failure, ConnectionLost | SessionExpired):
                self._give_up(connection, agreed=isinstance(failure, SessionExpired))
            elif isinstance(failure, AnswerLost):
                connection.doubt()
            raise failure from error

    async def _connected(self) -> Connection:
        """The connection. Waits for a server that starts, or that it wakes; a moment for one that is restarted."""
        if self._connection is not None and self._connection.over:
            self._give_up(self._connection, agreed=False)
        if self._connection is not None:
            return self._connection
        starts = self._rests or not self._opened
        patience = RESTART_PATIENCE + (self._conditions.connect_timeout if starts else 0)
        self._waiting += 1
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._has_settled(), patience)
        finally:
            self._waiting -= 1
        if self._connection is None:
            raise NotCarriedOut(
                self.spec.name,
                f"Server {self.spec.name!r} is {self.status.state}: {self.status.reason or 'no answer yet'}",
                remedy="Try again later, or use a tool of another server.",
            )
        return self._connection

    async def _has_settled(self) -> None:
        """There is a connection, or it is known why not; a lazy server without one is woken, once."""
        woken = False
        if self.status.state == "starting":
            self._wanted.set()
        while self._connection is None:
            if not woken and self._rests and self.status.state in ("idle", "unhealthy"):
                woken = True
                self.status = replace(self.status, state="starting", reason="")
                self._settled.clear()
                self._wanted.set()
            elif self._back_soon:
                await self._returned.wait()
            elif self.status.settled:
                return
            await self._settled.wait()

    def _be_back(self) -> None:
        """The first pause after the connection broke is over: calls that came in it wait for what comes of it."""
        if self._back_soon:
            self._back_soon = False
            if self.status.state != "stopped":
                self.status = replace(self.status, state="starting")
                self._settled.clear()
            self._returned.set()
            self._returned.clear()

    def _give_up(self, connection: Connection, *, agreed: bool) -> None:
        """No more calls on this connection; the supervising task makes a new one. Another is left alone."""
        if self._connection is connection:
            self._connection = None
            self._settled.clear()
            self.status = replace(self.status, state="starting", reason="The connection broke.")
            connection.end(agreed=agreed)

    @property
    def _rests(self) -> bool:
        """Whether it may be without a connection: it is lazy, and its tools are known."""
        return self._lazy and self._listed

    async def _recall(self) -> None:
        """The era the server spoke last, and its tools: a lazy one need not run (M19), another is listed at once."""
        known = await self._remembered.get()
        if known is None:
            return
        self._protocol = known.protocol
        try:
            await self._take(known)
        except Exception:
            LOGGER.exception("What is known of server %s cannot be used", self.spec.name)
            return
        self._wanted.clear()
        if self._lazy:
            await self._set(state="idle", protocol=known.protocol)
        else:
            asyncio.get_running_loop().call_later(HEAD_START, self._wanted.set)
            await self._set(protocol=known.protocol)

    async def _serve_once(self) -> Ended:
        """One connection, from beginning to end. One that was never opened says nothing of the era it speaks."""
        started = time.monotonic()
        connection = Connection(
            self.spec,
            self._conditions,
            protocol=self._protocol,
            heard=lambda message: self._heard(self.server.name, message),
        )
        loop = asyncio.get_running_loop()
        late = loop.call_later(self._conditions.connect_timeout, self._say_that_it_hangs, connection)

        async def opened(listing: Listing) -> None:
            late.cancel()
            await self._take(listing)
            self._opened = True
            self._connection = connection
            self._last_used = self._conditions.clock.monotonic()
            latency = (time.monotonic() - started) * 1000
            try:
                await self._catch_up(connection)
                await self._set(state="ready", reason="", latency_ms=latency, protocol=listing.protocol)
            finally:
                await self._remembered.put(listing)

        try:
            ended = await connection.run(opened, self._relisted)
        finally:
            late.cancel()
            self._connection = None
        if not ended.opened:
            self._protocol = ""
        return ended

    async def _say_level(self, connection: Connection) -> None:
        if self._level is None or "logging" not in self.capabilities or mode_of(self._protocol) != "legacy":
            return
        try:
            request = types.SetLevelRequest(params=types.SetLevelRequestParams(level=self._level))
            await connection.call(request, self._conditions.connect_timeout, None)
        except (MCPError, ValidationError) as error:
            LOGGER.info("Server %s takes no level of logging: %s", self.spec.name, error)

    async def _catch_up(self, connection: Connection) -> None:
        """Tell a new connection what was asked of the one before it."""
        await self._say_level(connection)
        for uri in sorted(self._watched):
            try:
                await connection.watch(uri)
            except MCPError as error:
                LOGGER.warning("Server %s does not watch %s any more: %s", self.spec.name, uri, error)

    def _say_that_it_hangs(self, connection: Connection) -> None:
        """At once, and not only when it has been ended, which takes seconds."""
        self._announcement = asyncio.ensure_future(self._set(state="unhealthy", reason=connection.too_late))

    async def _relisted(self, listing: Listing) -> None:
        before = self.tools, self.server
        await self._take(listing)
        if (self.tools, self.server) != before:
            await self._set()
            await self._remembered.put(listing)

    async def _take(self, listing: Listing) -> None:
        """Off the event loop: a server may list thousands. Raises CatalogError for what cannot be read, and leaves what
        there was."""
        tools = await asyncio.to_thread(tools_of, self.spec, listing)
        self.server, self.tools = server_of(self.spec, listing), tools
        self.capabilities = listing.introduction.get("capabilities") or {}
        self._listed = True
        self._protocol = listing.protocol

    async def _set(self, **changes: Any) -> None:
        """Fields of the status. One that is stopped stays so."""
        old = self.status
        if old.state == "stopped":
            return
        self.status = replace(old, tools=len(self.tools), known=self._listed, **changes)
        if self.status.settled:
            self._settled.set()
        if self.status.state == "unhealthy" and self.status.reason != old.reason:
            LOGGER.warning("Server %s is unhealthy: %s", self.spec.name, self.status.reason)
        await self._changed(self)


def _what(request: types.ClientRequest) -> str:
    """The tool that is called, or the request itself."""
    return request.params.name if isinstance(request, types.CallToolRequest) else request.method
