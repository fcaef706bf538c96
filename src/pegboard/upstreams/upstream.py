"""One supervised server: started when needed, called, and restarted after a failure."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import mcp_types as types
from anyio.lowlevel import checkpoint_if_cancelled
from mcp import MCPError
from mcp.shared.dispatcher import ProgressFnT
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from pegboard.catalog import BpeCounter
from pegboard.catalog.catalog import look_through, summarized
from pegboard.empty_sets import EMPTY, frozen
from pegboard.errors import NotCarriedOut, UpstreamError
from pegboard.flags import Flag
from pegboard.model import JsonObject, Server, ServerName, Tool, ToolId
from pegboard.protocols import Listing
from pegboard.settings.server_spec import ServerSpec
from pegboard.upstreams.authorization import Authorization
from pegboard.upstreams.call_spans import CallSpan
from pegboard.upstreams.connection import Connection, ConnectionEnd
from pegboard.upstreams.error_text import (
    AnswerLost,
    ConnectionLost,
    NeedsSignIn,
    SessionExpired,
    failed_call,
    needs_own_sign_in,
    needs_sign_in,
    told_to_user,
)
from pegboard.upstreams.extension_requests import AnyNotification, accepts_tasks
from pegboard.upstreams.fleet_options import FleetOptions
from pegboard.upstreams.handshake_state import HandshakeState
from pegboard.upstreams.http_transport import SIGN_IN
from pegboard.upstreams.limits import ListBudget
from pegboard.upstreams.raw_requests import AnyRequest
from pegboard.upstreams.request_origin import ORIGIN
from pegboard.upstreams.server_lists import ListingCache, needs_task, server_of, tools_of
from pegboard.upstreams.server_requests import InputRounds
from pegboard.upstreams.sign_in_tool import SIGN_IN_TOOL, admitted, sign_in_tool, signed_in_result
from pegboard.upstreams.status import ServerStatus
from pegboard.upstreams.task_runs import awaited_task

LOGGER = logging.getLogger(__name__)

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 60.0
HEAD_START = 1.0
"""Seconds before servers with known tools start, so that the gateway can answer its first requests first; those that
are processes start in turns then (`StartTurns`)."""
RESTART_PATIENCE = 5.0
"""Seconds that a call waits for a server being restarted."""
STEADY_SECONDS = 30.0
"""Seconds after which a connection counts as stable, so that the pause before a restart is reset."""


class Upstream:
    """A server's connection, shared by all callers (M16), and the tools it listed last.

    ``changed`` is awaited after every change of state or tools, ``heard`` with notifications about resources and
    prompts. Run `run` in its own task, which owns the connection. A lazy server whose tools are known is connected only
    while it is called or watches a resource. ``user`` is the one whose credentials it uses, if the server wants some;
    empty for those that all callers share. ``client`` is the only one that it serves, if it serves one alone. A spec
    with ``per_user`` is connected for users alone: without one, its only tool says so.
    """

    def __init__(
        self,
        spec: ServerSpec,
        changed: Callable[[Upstream], Awaitable[None]],
        conditions: FleetOptions,
        heard: Callable[[ServerName, types.ServerNotification | AnyNotification], Awaitable[None]],
        *,
        user: str = "",
        client: str = "",
    ) -> None:
        self.spec = spec
        self.user = user
        self.client = client
        self._authorization = Authorization(spec, conditions, user)
        self.server = Server(name=ServerName(spec.name), description=spec.description)
        self.tools: tuple[Tool, ...] = ()
        self.is_placeholder = False
        """Whether its only tool is ours, which stands for those that it lists after a sign-in."""
        self.status = ServerStatus(name=spec.name, state="starting")
        self.capabilities: JsonObject = {}
        self._accepts_tasks = False
        self._tasks_only: frozenset[str] = EMPTY
        self._changed = changed
        self._heard = heard
        self._session = HandshakeState(spec.name, conditions.connect_timeout, conditions.levels)
        self._conditions = conditions
        self._lazy = bool(user) or (conditions.lazy if spec.lazy is None else spec.lazy)
        self._listing_cache = ListingCache(conditions.definitions, spec, conditions.environment, user)
        self._listed = False
        self.connections = 0
        """How many were opened so far."""
        self._protocol = ""
        self._connection: Connection | None = None
        self._settled = Flag()
        self._back_soon = False
        self._returned = Flag()
        self._wanted = Flag()
        self._wanted.set()
        self._calls = 0
        self._watched_tasks: dict[str, None] = {}  # a third of an empty set
        self._waiting = 0
        self._turn: asyncio.Future[None] | None = None
        self._last_used = conditions.clock.monotonic()

    def room(self) -> ListBudget:
        """A budget for one list of this server."""
        return ListBudget(self._conditions.limits)

    async def run(self) -> None:
        """Connect, serve until the connection ends, pause, and repeat until cancelled; a lazy server waits for a
        call."""
        if self.spec.per_user and not self.user:
            self._stand_in()
            await self._set(state="signed_out", reason=str(self._signed_out()))
            await asyncio.Event().wait()
        await self._recall()
        try:
            await self._serve()
        finally:
            if self._turn is not None:
                self._turn.cancel()

    async def _serve(self) -> None:
        pause = FIRST_PAUSE
        while True:
            await self._wanted.wait()
            started = time.monotonic()
            ended = await self._serve_once()
            await checkpoint_if_cancelled()  # a connection that is ended may look like one that broke
            if ended.signed_out:
                await self._wait_for_sign_in(ended)
            elif ended.at_once:
                continue
            elif ended.opened and self._waiting:
                LOGGER.warning("Server %s is restarted: %s", self.spec.name, ended.reason)
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
        """The server's unchanged result (M7). Raises MCPError as the server sent it, UpstreamError if the server
        failed.

        Cancelling the call cancels it at the server. Its progress reports arrive before its result. A client may want a
        task instead of the result (MCP 2025-11-25, tasks); for others, a tool that only runs as a task is awaited.
        """
        if self.is_placeholder and name == SIGN_IN_TOOL:
            return await self._sign_in()
        params = types.CallToolRequestParams(name=name, arguments=None if arguments is None else dict(arguments))
        if meta:
            params.meta = dict(meta)  # type: ignore[assignment]  # any JSON object is a legal _meta
        request, origin = types.CallToolRequest(params=params), ORIGIN.get()
        if self._accepts_tasks:
            wanted = None if origin is None else origin.task
            if wanted is not None:
                params.task = types.TaskMetadata.model_validate(wanted)
            elif name in self._tasks_only:
                params.task = types.TaskMetadata()
                return await awaited_task(self.request, request, progress)
        return await self.request(request, progress)

    async def request(self, request: AnyRequest, progress: ProgressFnT | None = None) -> dict[str, Any]:
        """The result of any request, handled like a call; the server's questions go to the request's `ORIGIN`."""
        rounds = InputRounds(request, self.spec.name)
        with self._in_use():
            while True:
                rounds.prepare()
                result = await self._authorized(request, progress)
                if await rounds.are_over(result):
                    return rounds.given(result)

    async def watch(self, uri: str) -> None:
        """Subscribe to a resource, on later connections too. Raises MCPError if the server refuses."""
        if not self._session.watched[uri]:
            with self._in_use():
                connection = await self._connected()
                try:
                    await connection.watch(uri)
                except BaseException:
                    if not self._session.watched[uri]:  # nor does another endpoint watch it by now
                        connection.close_stream(uri)
                    raise
        self._session.watched[uri] += 1

    def watches(self, uri: str) -> bool:
        """Whether a `watch` of the resource is not undone yet."""
        return uri in self._session.watched

    async def unwatch(self, uri: str) -> None:
        """Undo one `watch`; the subscription ends with the last one."""
        if self._session.watched[uri] > 1:
            self._session.watched[uri] -= 1
        elif self._session.watched.pop(uri, 0) and self._connection is not None:
            await self._connection.unwatch(uri)

    async def watch_task(self, task: str) -> None:
        """Ask to hear of a task. Raises UpstreamError for a server that is not there."""
        (await self._connected()).watch_task(task)
        self._watched_tasks[task] = None

    def unwatch_task(self, task: str) -> None:
        self._watched_tasks.pop(task, None)
        self._last_used = self._conditions.clock.monotonic()
        if self._connection is not None:
            self._connection.unwatch_task(task)

    async def say_level(self) -> None:
        """Tell a server of the handshake era the log level that clients want; one that is not running gets it when it
        starts."""
        if self._connection is not None:
            await self._session.say_level(self._connection, self.capabilities, self._protocol)

    async def tell_roots_changed(self) -> None:
        """Notify the server of changed roots; one that is not running is not started."""
        if self._connection is not None:
            await self._connection.tell_roots_changed()

    def inherit(self, before: Upstream) -> None:
        """Take over the tools of the same server under its old configuration, until it lists its own."""
        self.tools, self.is_placeholder = before.tools, before.is_placeholder
        self.capabilities = before.capabilities
        self._accepts_tasks, self._tasks_only = before._accepts_tasks, before._tasks_only
        self.server = replace(before.server, description=self.spec.description or before.server.description)
        self.status = replace(self.status, tools=len(self.tools))

    def go_on_for(self, before: Upstream) -> None:
        """Watch what the same server watched under its old configuration."""
        self._session = before._session

    async def stop_if_idle(self, rest: float = math.inf) -> None:
        """Stop a lazy server without a call for ``idle_stop`` seconds, or for ``rest`` if it has no sessions and is
        reached by HTTP. Its tools stay."""
        limit = self._conditions.idle_stop
        if self.spec.url is not None and self._protocol in MODERN_PROTOCOL_VERSIONS:
            limit = min(limit, rest)
        if self._connection is None or not self._rests or not limit:
            return
        if self.unused_for >= limit:
            self._wanted.clear()
            self._give_up(self._connection, agreed=True)
            await self._set(state="idle", reason="")

    @property
    def unused_for(self) -> float:
        """Seconds since its last call ended; 0 while one is in progress, or somebody hears of a task."""
        busy = self._calls or self._watched_tasks
        return 0.0 if busy else self._conditions.clock.monotonic() - self._last_used

    def stop(self) -> None:
        """Refuse every call from now on; cancelling `run` ends those in progress."""
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

    def _stand_in(self) -> None:
        """List the tool of ours that signs in, and nothing else."""
        self.tools, self.is_placeholder = (sign_in_tool(self.spec.name, per_user=self.spec.per_user),), True

    async def _sign_in(self) -> dict[str, Any]:
        if not await self._authorization.ask():
            raise self._signed_out()
        await self._reconnected()
        await self._connected()
        return signed_in_result(self.spec.name, await admitted(self.tools, self._conditions.admit))

    def _signed_out(self) -> NeedsSignIn:
        if not self.spec.per_user:
            return needs_sign_in(self.spec.name)
        return needs_own_sign_in(self.spec.name, self.user, exchanges=self.spec.exchanges_tokens)

    async def _reconnected(self) -> None:
        """Wait for the connection after a sign-in. An attempt that began before it may still report the old state."""
        loop, seconds = asyncio.get_running_loop(), self._conditions.connect_timeout + RESTART_PATIENCE
        end = loop.time() + seconds
        while self._connection is None and self.status.state in ("signed_out", "starting") and loop.time() < end:
            if self.status.state == "signed_out":
                self.status = replace(self.status, state="starting", reason="")
                self._settled.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._settled.wait(), end - loop.time())

    async def _authorized(self, request: AnyRequest, progress: ProgressFnT | None) -> dict[str, Any]:
        """As `_sent`; once more if the person at the client has signed in, or allowed more, when asked to."""
        try:
            return await self._sent(request, progress)
        except NeedsSignIn as error:
            if not await self._authorization.ask():
                if not self.spec.per_user:
                    raise
                exchanges = self.spec.exchanges_tokens
                raise told_to_user(error, self.spec.name, self.user, exchanges=exchanges) from error
        await self._reconnected()
        return await self._sent(request, progress)

    async def _sent(self, request: AnyRequest, progress: ProgressFnT | None) -> dict[str, Any]:
        """As `_send`; once more, on a new connection, if the session had expired."""
        with suppress(SessionExpired):
            return await self._send(request, progress)
        return await self._send(request, progress)

    async def _send(self, request: AnyRequest, progress: ProgressFnT | None) -> dict[str, Any]:
        if self._conditions.tracer is None:
            return await self._exchanged(request, progress)
        with CallSpan(self._conditions.tracer, self.spec, self._protocol, request) as span:
            result = await self._exchanged(request, progress)
            span.answered(result)
            return result

    async def _exchanged(self, request: AnyRequest, progress: ProgressFnT | None) -> dict[str, Any]:
        connection, seconds = await self._connected(), self._conditions.call_timeout
        if isinstance(request, types.CallToolRequest):
            await self._conditions.admit(ToolId(self.spec.name, request.params.name))
        try:
            return await connection.call(request, seconds, progress)
        except (MCPError, ValidationError) as error:
            failure = failed_call(error, self.spec.name, _what(request), seconds)
            if isinstance(failure, ConnectionLost) and self.status.state == "stopped":
                failure = UpstreamError(
                    self.spec.name,
                    f"Server {self.spec.name!r} was stopped during the call: {self.status.reason}",
                    remedy="It is not known whether the call took effect; search for its tools again.",
                )
            elif isinstance(failure, NeedsSignIn) and SIGN_IN in failure.message:
                self._give_up(connection, agreed=True)
            elif isinstance(failure, ConnectionLost | SessionExpired):
                self._give_up(connection, agreed=isinstance(failure, SessionExpired))
            elif isinstance(failure, AnswerLost):
                connection.check_alive()
            raise failure from error

    async def _connected(self) -> Connection:
        """The connection. Starts an idle server, and waits for one that is starting; briefly for one being
        restarted."""
        if self._connection is not None and self._connection.over:
            self._give_up(self._connection, agreed=False)
        if self._connection is not None:
            return self._connection
        starts = self._rests or not self.connections
        patience = RESTART_PATIENCE + (self._conditions.connect_timeout if starts else 0)
        self._waiting += 1
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._has_settled(), patience)
        finally:
            self._waiting -= 1
        if self._connection is None:
            if self.status.state == "signed_out":
                raise self._signed_out()
            raise NotCarriedOut(
                self.spec.name,
                f"Server {self.spec.name!r} is {self.status.state}: {self.status.reason or 'no answer yet'}",
                remedy="Try again later, or use a tool of another server.",
            )
        return self._connection

    async def _has_settled(self) -> None:
        """Wait until there is a connection or a reason why not; start an idle lazy server, once."""
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
        """The first pause after a lost connection is over: calls that arrived in it wait for the restart."""
        if self._back_soon:
            self._back_soon = False
            if self.status.state != "stopped":
                self.status = replace(self.status, state="starting")
                self._settled.clear()
            self._returned.set()
            self._returned.clear()

    def _give_up(self, connection: Connection, *, agreed: bool) -> None:
        """End this connection, unless it was replaced already; the supervising task opens a new one."""
        if self._connection is connection:
            self._connection = None
            self._settled.clear()
            self.status = replace(self.status, state="starting", reason="The connection broke.")
            connection.end(agreed=agreed)

    @property
    def _rests(self) -> bool:
        """Whether it may stay disconnected: it is lazy, its tools are known, and it watches nothing."""
        return self._lazy and self._listed and not self._session.watched

    async def _recall(self) -> None:
        """Restore the server's era and tools from the cache: a lazy server need not run (M19), others are listed at
        once."""
        known = await self._listing_cache.get()
        if known is None:
            return
        self._protocol = known.protocol
        try:
            await self._take(known)
        except Exception:
            LOGGER.exception("The stored listing of server %s cannot be used", self.spec.name)
            return
        self._wanted.clear()
        if self._rests:
            await self._set(state="idle", protocol=known.protocol)
        else:
            await self._set(protocol=known.protocol)
            if self._waiting:
                self._wanted.set()
            elif self.spec.url is None:
                turns = self._conditions.start_turns
                self._turn = asyncio.ensure_future(turns.take(self._wanted, self._settled, HEAD_START))
            else:
                asyncio.get_running_loop().call_later(HEAD_START, self._wanted.set)

    async def _wait_for_sign_in(self, ended: ConnectionEnd) -> None:
        """Until there are other credentials. The server is also asked again from time to time, as it may have been
        opened to all."""
        if not self._listed:
            self._stand_in()
        await self._set(state="signed_out", reason=str(self._signed_out()) if self.spec.per_user else ended.reason)
        await self._authorization.wait_for_news(LONGEST_PAUSE)

    async def _serve_once(self) -> ConnectionEnd:
        """Run one connection to its end. If it never opened, the server's era counts as unknown."""
        started = time.monotonic()
        connection = Connection(
            self.spec,
            self._conditions,
            protocol=self._protocol,
            heard=lambda message: self._heard(self.server.name, message),
            user=self.user,
        )
        loop = asyncio.get_running_loop()
        late = loop.call_later(self._conditions.connect_timeout, self._say_that_it_hangs, connection)

        async def opened(listing: Listing) -> None:
            late.cancel()
            await self._take(listing)
            self.connections += 1
            self._connection = connection
            self._last_used = self._conditions.clock.monotonic()
            latency = (time.monotonic() - started) * 1000
            try:
                await self._session.repeat(connection, self.capabilities, self._protocol)
                await self._set(state="ready", reason="", latency_ms=latency, protocol=listing.protocol)
            finally:
                await self._listing_cache.put(listing)

        try:
            ended = await connection.run(opened, self._relisted)
        finally:
            late.cancel()
            self._connection, self._authorization.auth = None, connection.auth
        if not ended.opened:
            self._protocol = ""
        return ended

    def _say_that_it_hangs(self, connection: Connection) -> None:
        """Report the timeout immediately: ending the connection takes seconds."""
        self._announcement = asyncio.ensure_future(self._set(state="unhealthy", reason=connection.too_late))

    async def _relisted(self, listing: Listing) -> None:
        before = self.tools, self.server
        await self._take(listing)
        if (self.tools, self.server) != before:
            await self._set()
            await self._listing_cache.put(listing)

    async def _take(self, listing: Listing) -> None:
        """Replace the tools by those of a listing. Parsed off the event loop: a server may list thousands.

        Raises CatalogError for an unreadable listing, and keeps the old tools.
        """
        tools = await asyncio.to_thread(self._tools_of, listing)
        self.server, self.tools, self.is_placeholder = server_of(self.spec, listing), tools, False
        self.capabilities = listing.introduction.get("capabilities") or {}
        self._accepts_tasks = accepts_tasks(self.capabilities)
        self._tasks_only = frozen(tool.name for tool in tools if needs_task(tool))
        self._listed = True
        self._protocol = listing.protocol

    def _tools_of(self, listing: Listing) -> tuple[Tool, ...]:
        """The tools of a listing, with all that catalogs need of them."""
        counter = BpeCounter()
        tools = self._conditions.shared_tools.of(summarized(tools_of(self.spec, listing), counter))
        look_through(tools, counter)
        return tools

    async def _set(self, **changes: Any) -> None:
        """Change fields of the status. A stopped server stays stopped."""
        old = self.status
        if old.state == "stopped":
            return
        tools = len(self.tools) if self._listed else 0
        self.status = replace(old, tools=tools, known=self._listed, **changes)
        if self.status.settled:
            self._settled.set()
        if self.status.state == "unhealthy" and self.status.reason != old.reason:
            LOGGER.warning("Server %s is unhealthy: %s", self.spec.name, self.status.reason)
        await self._changed(self)


def _what(request: AnyRequest) -> str:
    """The name of the called tool, or the request's method."""
    return request.params.name if isinstance(request, types.CallToolRequest) else request.method
