"""One server under supervision: started when it is needed, called, and when it breaks, said why and tried again."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.shared.dispatcher import ProgressFnT
from pydantic import ValidationError

from pegboard.errors import ConfigError, PegboardError, UpstreamError
from pegboard.model import JsonObject, Server, ServerName, Tool
from pegboard.seams import Clock, Definitions, Listing
from pegboard.server_spec import ServerSpec
from pegboard.upstreams.connection import FIRST_PAUSE, LONGEST_PAUSE, Connection, NoAnswer, mode_of
from pegboard.upstreams.explained import Redactor, described
from pegboard.upstreams.listing import server_of, tools_of
from pegboard.upstreams.remembered import Remembered
from pegboard.upstreams.status import ServerStatus, State

LOGGER = logging.getLogger(__name__)

RESTART_PATIENCE = 5.0
"""Seconds a call waits for a server that is being restarted."""
STEADY_SECONDS = 30.0
"""A connection that lasted this long starts its pauses anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What all servers of a fleet have in common. Times are seconds; ``idle_stop`` 0 is never."""

    connect_timeout: float
    call_timeout: float
    clock: Clock
    environment: Mapping[str, str]
    definitions: Definitions | None = None
    lazy: bool = False
    idle_stop: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a connection ended. ``at_once``: there is nothing to say of it, and nothing to wait for."""

    reason: str = ""
    opened: bool = False
    at_once: bool = False
    final: bool = False


class Upstream:
    """A server's connection, kept and shared by all callers (M16), and the tools it listed last.

    ``changed`` is awaited after every change of state or tools. Run `run` as a task of its own: the connection
    lives and dies in it. A lazy server whose tools are known has a connection only while it is called.
    """

    def __init__(
        self, spec: ServerSpec, changed: Callable[[Upstream], Awaitable[None]], conditions: Conditions
    ) -> None:
        self.spec = spec
        self.server = Server(name=ServerName(spec.name), description=spec.description)
        self.tools: tuple[Tool, ...] = ()
        self.status = ServerStatus(name=spec.name, state="starting")
        self._changed = changed
        self._conditions = conditions
        self._lazy = conditions.lazy if spec.lazy is None else spec.lazy
        self._redacted = Redactor(spec, conditions.environment)
        self._remembered = Remembered(conditions.definitions, spec, conditions.environment)
        self._listed = False
        self._protocol = ""
        self._connection: Connection | None = None
        self._settled = asyncio.Event()
        self._wanted = asyncio.Event()
        self._wanted.set()
        self._calls = 0
        self._waiting = 0
        self._last_used = conditions.clock.monotonic()

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
                await self._set(state="unhealthy", reason=ended.reason)
                if ended.final:
                    return
                pause = FIRST_PAUSE if time.monotonic() - started > STEADY_SECONDS else pause
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
        self._calls += 1
        try:
            with suppress(_SessionExpired):
                return await self._send(request, progress)
            return await self._send(request, progress)
        except _SessionExpired as error:
            raise UpstreamError(
                self.spec.name, f"Server {self.spec.name!r} forgets its sessions at once.", remedy="Try again later."
            ) from error
        finally:
            self._calls -= 1
            self._last_used = self._conditions.clock.monotonic()

    def inherit(self, before: Upstream) -> None:
        """The tools of the same server under its old configuration, until it lists its own."""
        self.tools = before.tools
        self.server = replace(before.server, description=self.spec.description or before.server.description)
        self.status = replace(self.status, tools=len(self.tools))

    async def stop_if_idle(self) -> None:
        """End a lazy server that nobody has called for ``idle_stop`` seconds. Its tools stay."""
        unused = self._conditions.clock.monotonic() - self._last_used
        if self._connection is None or self._calls or not self._rests or not self._conditions.idle_stop:
            return
        if unused >= self._conditions.idle_stop:
            self._wanted.clear()
            self._give_up(self._connection, agreed=True)
            await self._set(state="idle", reason="")

    def stop(self) -> None:
        """From now on every call is refused; ending `run` ends those under way."""
        self._connection = None
        self.status = replace(self.status, state="stopped", reason="Its configuration was changed or removed.")
        self._settled.set()

    async def _recall(self) -> None:
        """The era the server spoke last and, of a lazy server, its tools: then it need not run (M19)."""
        known = await self._remembered.get()
        if known is None:
            return
        self._protocol = known.protocol
        if not self._lazy:
            return
        try:
            self._take(known)
        except Exception:
            LOGGER.exception("What is known of server %s cannot be used", self.spec.name)
            return
        self._wanted.clear()
        await self._set(state="idle", protocol=known.protocol)

    @property
    def _rests(self) -> bool:
        """Whether it may be without a connection: it is lazy, and its tools are known."""
        return self._lazy and self._listed

    async def _send(self, request: types.CallToolRequest, progress: ProgressFnT | None) -> dict[str, Any]:
        connection = await self._connected()
        try:
            return await connection.call(request, self._conditions.call_timeout, progress)
        except MCPError as error:
            raise self._explained(error, connection) from error
        except ValidationError as error:
            raise UpstreamError(
                self.spec.name,
                f"Server {self.spec.name!r} answered {request.params.name!r} with something that is no tool result.",
                remedy="Report it to the server's authors.",
            ) from error

    async def _connected(self) -> Connection:
        """The connection. Waits for a lazy server that it wakes, and a moment for one that is being restarted."""
        woken = False
        self._waiting += 1
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(RESTART_PATIENCE + (self._conditions.connect_timeout if self._rests else 0)):
                    while self._connection is None:
                        if not woken and self._rests and self.status.state in ("idle", "unhealthy"):
                            woken = True
                            self._wake()
                        elif self.status.settled:
                            break
                        await self._settled.wait()
        finally:
            self._waiting -= 1
        if self._connection is None:
            raise UpstreamError(
                self.spec.name,
                f"Server {self.spec.name!r} is {self.status.state}: {self.status.reason or 'no answer yet'}",
                remedy="Try again later, or use a tool of another server.",
            )
        return self._connection

    def _wake(self) -> None:
        self.status = replace(self.status, state="starting", reason="")
        self._settled.clear()
        self._wanted.set()

    def _explained(self, error: MCPError, connection: Connection) -> Exception:
        """A broken connection or a time-out as our own error; what the server itself said stays as it is (M8)."""
        match error.code, error.message:
            case types.CONNECTION_CLOSED, "Connection closed" if self.status.state == "stopped":
                return UpstreamError(
                    self.spec.name,
                    f"Server {self.spec.name!r} was stopped during the call: its configuration was changed or removed.",
                    remedy="Whether the call took effect is not known; look for its tools again.",
                )
            case types.CONNECTION_CLOSED, "Connection closed":
                self._give_up(connection, agreed=False)
                return UpstreamError(
                    self.spec.name,
                    f"Server {self.spec.name!r} closed the connection during the call.",
                    remedy="It is being restarted; whether the call took effect is not known.",
                )
            case types.REQUEST_TIMEOUT, "Request 'tools/call' timed out":
                return UpstreamError(
                    self.spec.name,
                    f"Server {self.spec.name!r} did not answer within {self._conditions.call_timeout:g} s.",
                    remedy="Raise call_timeout, or ask for less.",
                )
            case types.INVALID_REQUEST, "Session terminated":
                self._give_up(connection, agreed=True)
                return _SessionExpired()
        return error

    def _give_up(self, connection: Connection, *, agreed: bool) -> None:
        """No more calls on this connection; the supervising task makes a new one. Another is left alone."""
        if self._connection is connection:
            self._connection = None
            self._settled.clear()
            self.status = replace(self.status, state="starting", reason="The connection broke.")
            connection.end(agreed=agreed)

    async def _serve_once(self) -> Ended:
        """One connection, from beginning to end."""
        conditions, mode = self._conditions, mode_of(self._protocol)
        connection: Connection | None = None
        started = time.monotonic()
        late: asyncio.TimerHandle | None = None
        try:
            spec = self.spec.expanded(conditions.environment)
            connection = Connection(
                spec, conditions.environment, self._redacted, mode=mode, patience=conditions.connect_timeout
            )
            late = asyncio.get_running_loop().call_later(
                conditions.connect_timeout, self._say_that_it_hangs, connection
            )
            async with connection.open() as listing:
                late.cancel()
                self._take(listing)
                self._connection = connection
                self._last_used = conditions.clock.monotonic()
                latency = (time.monotonic() - started) * 1000
                try:
                    await self._set(state="ready", reason="", latency_ms=latency, protocol=listing.protocol)
                finally:
                    await self._remembered.put(listing)
                await connection.serve(self._relisted)
            return Ended(reason=connection.because("The connection broke."), opened=True, at_once=connection.agreed)
        except Exception as error:  # noqa: BLE001 - whatever one server provokes, the others live
            return self._failed(error, connection, mode)
        finally:
            if late is not None:
                late.cancel()
            self._connection = None

    def _failed(self, error: Exception, connection: Connection | None, mode: str) -> Ended:
        """A server that does not answer in the era it spoke last is asked, once, which it speaks now."""
        opened = connection is not None and connection.opened
        if connection is None or isinstance(error, PegboardError):
            return Ended(reason=self._redacted(described(error)), opened=opened, final=isinstance(error, ConfigError))
        if opened:
            return Ended(reason=connection.because(described(error)), opened=True, at_once=connection.agreed)
        self._protocol = ""
        if isinstance(error, NoAnswer):
            return Ended(reason=connection.because(self._too_late))
        return Ended(reason=connection.because(described(error)), at_once=mode == "legacy")

    def _say_that_it_hangs(self, connection: Connection) -> None:
        """At once, and not only when it has been ended, which takes seconds."""
        reason = connection.because(self._too_late)
        self._announcement = asyncio.ensure_future(self._set(state="unhealthy", reason=reason))

    @property
    def _too_late(self) -> str:
        return f"No answer within {self._conditions.connect_timeout:g} s."

    async def _relisted(self, listing: Listing) -> None:
        before = self.tools, self.server
        self._take(listing)
        if (self.tools, self.server) != before:
            await self._set()
            await self._remembered.put(listing)

    def _take(self, listing: Listing) -> None:
        """Raises CatalogError for a listing that cannot be read, and leaves what there was."""
        self.server, self.tools = server_of(self.spec, listing), tools_of(self.spec, listing)
        self._listed = True
        self._protocol = listing.protocol

    async def _set(
        self,
        *,
        state: State | None = None,
        reason: str | None = None,
        latency_ms: float | None = None,
        protocol: str | None = None,
    ) -> None:
        old = self.status
        if old.state == "stopped":
            return
        given = {"state": state, "reason": reason, "latency_ms": latency_ms, "protocol": protocol}
        changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        self.status = replace(old, tools=len(self.tools), **changes)
        if self.status.settled:
            self._settled.set()
        if self.status.state == "unhealthy" and self.status.reason != old.reason:
            LOGGER.warning("Server %s is unhealthy: %s", self.spec.name, self.status.reason)
        await self._changed(self)


class _SessionExpired(Exception):  # noqa: N818
    """An HTTP server forgot our session: connect again and retry once (M14)."""
