"""All servers, each running independently of the others (M15)."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.dispatcher import ProgressFnT

from pegboard.catalog import Catalog
from pegboard.errors import NotCarriedOut
from pegboard.events import ServerChanged
from pegboard.model import JsonObject, ServerName, ToolId
from pegboard.protocols import Clock, Definitions, EventSink
from pegboard.settings.server_spec import ServerSpec
from pegboard.telemetry.trace_spans import Tracer
from pegboard.upstreams.extension_requests import AnyNotification
from pegboard.upstreams.fleet_options import HEALTH_TIMEOUT, FleetOptions, admit_all
from pegboard.upstreams.limits import DEFAULT_LIMITS, UpstreamLimits
from pegboard.upstreams.oauth.sign_ins import SignIns
from pegboard.upstreams.per_client import ClientConnections, RunningServer
from pegboard.upstreams.request_origin import ORIGIN
from pegboard.upstreams.server_requests import AskRoots
from pegboard.upstreams.sign_in_questions import SignInQuestions
from pegboard.upstreams.status import ServerStatus
from pegboard.upstreams.upstream import Upstream

LOGGER = logging.getLogger(__name__)

Listener = Callable[[], Awaitable[None]]
NewsListener = Callable[[ServerName, types.ServerNotification | AnyNotification], Awaitable[None]]

LOOKS_PER_STOP = 4
LONGEST_LOOK = 30.0
"""Maximum seconds between two checks for idle servers."""
CONNECTING_SECONDS = 1.0
"""The assumed connection time of a server that was never connected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listeners:
    """``changed`` is awaited after every change of a server, ``heard`` with its notifications."""

    changed: Callable[[Upstream], Awaitable[None]]
    heard: NewsListener


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Names of servers, in configuration order."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    restarted: tuple[str, ...] = ()


class Fleet:
    """Starts every server on entering and ends every process on leaving.

    ``on_change`` is awaited when the callable tools change, ``on_news`` with a server's notifications about its
    resources and prompts. With ``definitions``, lazy servers that were listed before start with their first call and
    stop after ``idle_stop`` seconds without one. An answer that exceeds ``limits`` is an error of its request. A server
    is restarted if a call times out and it then stays silent for ``health_timeout`` seconds. ``admit`` is called right
    before a call is sent, and raises for a tool that must not be called after all. If a spec sets ``per_client``,
    clients that can be told apart get their own connections for calls; lists, resources and prompts come from the
    shared one. ``sign_ins`` has the tokens for servers that want one.
    """

    def __init__(
        self,
        specs: Mapping[str, ServerSpec],
        *,
        connect_timeout: float,
        call_timeout: float,
        events: EventSink,
        clock: Clock,
        environment: Mapping[str, str] | None = None,
        on_change: Listener | None = None,
        on_news: NewsListener | None = None,
        definitions: Definitions | None = None,
        lazy: bool = False,
        idle_stop: float = 0.0,
        limits: UpstreamLimits = DEFAULT_LIMITS,
        health_timeout: float = HEALTH_TIMEOUT,
        admit: Callable[[ToolId], Awaitable[None]] = admit_all,
        sign_ins: SignIns | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        self._events = events
        self._clock = clock
        self._on_change = on_change
        self._on_news = on_news
        self._settled = asyncio.Condition()
        self._applying = asyncio.Lock()
        self._tasks = anyio.create_task_group()
        self._apart: dict[asyncio.Task[None], RunningServer] = {}
        """Connections of single clients and users, by their tasks."""
        self._sign_in_questions = None if sign_ins is None else SignInQuestions(sign_ins)
        self._conditions = FleetOptions(
            connect_timeout=connect_timeout,
            call_timeout=call_timeout,
            clock=clock,
            environment=dict(os.environ if environment is None else environment),
            definitions=definitions,
            lazy=lazy,
            idle_stop=idle_stop,
            limits=limits,
            health_timeout=health_timeout,
            admit=admit,
            sign_ins=sign_ins,
            sign_in_questions=self._sign_in_questions,
            tracer=tracer,
        )
        self._servers = {name: self._made(spec) for name, spec in specs.items()}
        self._client_connections = ClientConnections(self._start_for_client)

    async def __aenter__(self) -> Fleet:
        await self._tasks.__aenter__()
        for name, running in self._servers.items():
            self._tasks.start_soon(self._run, running, None, name=f"pegboard-{name}")
        if self._conditions.idle_stop:
            self._tasks.start_soon(self._look_for_idle_servers, name="pegboard-idle")
        self._tasks.start_soon(self._look_for_idle_clients, name="pegboard-idle-clients")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Structured cancellation only: a bare `Task.cancel` would break the SDK's shielded shutdown of processes."""
        if self._sign_in_questions is not None:
            self._sign_in_questions.close()
        self._tasks.cancel_scope.cancel()
        for running in self._apart.values():
            running.scope.cancel()
        try:
            await self._tasks.__aexit__(kind, error, trace)
        finally:
            if self._apart:
                await asyncio.wait(self._apart)
            await self._conditions.pools.aclose()

    async def apply(self, specs: Mapping[str, ServerSpec]) -> Changes:
        """Replace the servers, touching only those whose spec changed (M27). Only inside the fleet's context.

        Calls to a removed server fail from now on, and its processes have ended when this returns. A restarted server
        keeps its tools until it lists them again, and watches the same resources.
        """
        async with self._applying:
            before = self._servers
            same = {name for name in before.keys() & specs.keys() if before[name].upstream.spec == specs[name]}
            self._servers = {name: before[name] if name in same else self._made(spec) for name, spec in specs.items()}
            leaving = {name: running for name, running in before.items() if name not in same}
            ending = self._client_connections.leave(leaving)
            for running in leaving.values():
                running.upstream.stop()
                running.scope.cancel()
            for name, running in self._servers.items():
                if name not in same:
                    self._succeed(running, leaving.get(name))
            for running in leaving.values():
                self._tell(running.upstream)
            if leaving or list(before) != list(specs):
                await self._notify()
            for running in (*leaving.values(), *ending):
                await running.ended.wait()
        return Changes(
            added=tuple(name for name in specs if name not in before),
            removed=tuple(name for name in before if name not in specs),
            restarted=tuple(name for name in specs if name in leaving),
        )

    async def settled(self, timeout: float, *, some: bool = False) -> bool:
        """Wait until each server has listed its tools or failed; false on timeout.

        With ``some``, wait only until any server has tools.
        """

        def done() -> bool:
            statuses = self.status()
            return all(each.heard_of for each in statuses) or (some and any(each.tools for each in statuses))

        with suppress(TimeoutError):
            async with asyncio.timeout(timeout), self._settled:
                await self._settled.wait_for(done)
        return done()

    def catalog(self) -> Catalog:
        """The tools that each server listed last, in configuration order.

        A server that is down or not started keeps its tools, so that listings stay stable.
        """
        return Catalog.build((each.upstream.server, each.upstream.tools) for each in self._servers.values())

    def listed(self) -> Catalog:
        """As `catalog`, without the tools that stand for those of servers which wait for a sign-in."""
        running = [each.upstream for each in self._servers.values()]
        return Catalog.build((each.server, () if each.is_placeholder else each.tools) for each in running)

    def is_placeholder(self, tool: ToolId) -> bool:
        """Whether a tool is ours, and not its server's."""
        found = self._servers.get(tool.server)
        return found is not None and found.upstream.is_placeholder

    def status(self) -> list[ServerStatus]:
        return [each.upstream.status for each in self._servers.values()]

    def connections(self) -> Mapping[str, float]:
        """Seconds of the last connect of each server without an open connection (L^conn, EHRR eq. 2)."""
        return {
            each.name: CONNECTING_SECONDS if each.latency_ms is None else each.latency_ms / 1000
            for each in self.status()
            if each.state != "ready"
        }

    async def call(
        self,
        tool: ToolId,
        arguments: JsonObject | None,
        *,
        meta: Mapping[str, Any] | None = None,
        progress: ProgressFnT | None = None,
    ) -> dict[str, Any]:
        """The unchanged result of the tool's server."""
        return await self.reached(tool.server).call(tool.name, arguments, meta=meta, progress=progress)

    def reached(self, server: str) -> Upstream:
        """The server of a name, on the connection that the current request uses. Raises NotCarriedOut if there is
        none."""
        upstream, origin = self.upstream(server), ORIGIN.get()
        if upstream.spec.per_client and origin is not None and origin.named:
            return self._client_connections.of(upstream, origin.client)
        return upstream

    def forget(self, client: str) -> None:
        """A client has left: end its connections."""
        self._conditions.levels.forget(client)
        self._client_connections.forget(client)
        self.leave(client)

    def join(self, client: str, ask: AskRoots | None) -> None:
        """A client has connected. ``ask`` requests its roots outside its own requests; None if it has none."""
        self._conditions.clients.join(client, ask)
        self.roots_changed(client)

    def leave(self, client: str) -> None:
        """A client's connection has ended; it may come back."""
        if self._conditions.clients.leave(client):
            self.roots_changed(client)

    def roots_changed(self, client: str | None, own: Iterable[Upstream] = ()) -> None:
        """Notify the servers, which ask again if they need the roots: those that all clients share, those that serve
        this client alone, and those that are a user's ``own``."""
        alone = () if client is None else self._client_connections.of_client(client)
        for upstream in (*self.upstreams, *alone, *own):
            self._tasks.start_soon(_tell_roots_changed, upstream, name=f"pegboard-{upstream.spec.name}-roots")

    async def set_level(self, client: str, level: types.LoggingLevel) -> None:
        """A client of the handshake era wants the logs of all servers from this level on."""
        self._conditions.levels.put(client, level)
        every = (*self.upstreams, *self._client_connections.of_client(client))
        await asyncio.gather(*(each.say_level() for each in every))

    @property
    def upstreams(self) -> list[Upstream]:
        """In configuration order."""
        return [each.upstream for each in self._servers.values()]

    def upstream(self, server: str) -> Upstream:
        """The server of a name. Raises NotCarriedOut if there is none."""
        if server not in self._servers:
            raise NotCarriedOut(server, f"No server {server!r} is configured.")
        return self._servers[server].upstream

    async def stop_idle(self) -> None:
        """End every lazy server without a call for ``idle_stop`` seconds. The fleet also does so periodically."""
        for running in list(self._servers.values()):
            await running.upstream.stop_if_idle()

    async def _look_for_idle_servers(self) -> None:
        while True:
            await asyncio.sleep(min(self._conditions.idle_stop / LOOKS_PER_STOP, LONGEST_LOOK))
            await self.stop_idle()

    async def _look_for_idle_clients(self) -> None:
        while True:
            await asyncio.sleep(LONGEST_LOOK)
            self._client_connections.stop_idle()

    def _start_for_client(self, shared: Upstream, client: str) -> RunningServer:
        """Start a connection for one client. Of what comes on it, listeners hear only of tasks."""
        shared_by = self._conditions
        options = replace(shared_by, clients=shared_by.clients.alone(client), levels=shared_by.levels.alone(client))
        heard = partial(self._heard_alone, client)
        running = RunningServer(upstream=Upstream(shared.spec, _unheard, options, heard, client=client))
        running.upstream.inherit(shared)
        self._start_apart(running, f"pegboard-{shared.spec.name}-apart")
        return running

    def start_for_user(self, spec: ServerSpec, user: str, options: FleetOptions, listeners: Listeners) -> RunningServer:
        """Start one user's connection to a server, which ends with the fleet at the latest."""
        running = RunningServer(upstream=Upstream(spec, listeners.changed, options, listeners.heard, user=user))
        self._start_apart(running, f"pegboard-{spec.name}-user")
        return running

    def _start_apart(self, running: RunningServer, name: str) -> None:
        """Outside the context of the request that wants it, which it would keep in memory, its token included. Of these
        there are many: a task in the group takes two kilobytes more."""
        work = self._run(running, None)
        task = asyncio.get_running_loop().create_task(work, name=name, context=Context())
        self._apart[task] = running
        task.add_done_callback(self._apart.pop)

    @property
    def options(self) -> FleetOptions:
        """Those of all its servers."""
        return self._conditions

    def _made(self, spec: ServerSpec) -> RunningServer:
        return RunningServer(upstream=Upstream(spec, self._changed, self._conditions, self._heard))

    def _succeed(self, running: RunningServer, before: RunningServer | None) -> None:
        """Start a server after its predecessor of the same name has ended."""
        if before is not None:
            running.upstream.inherit(before.upstream)
            running.upstream.go_on_for(before.upstream)
        self._tasks.start_soon(self._run, running, before, name=f"pegboard-{running.upstream.spec.name}")

    async def _run(self, running: RunningServer, before: RunningServer | None) -> None:
        try:
            with running.scope:
                if before is not None:
                    await before.ended.wait()
                await running.upstream.run()
        finally:
            running.ended.set()

    async def _changed(self, upstream: Upstream) -> None:
        self._tell(upstream)
        await self._notify()

    async def _heard(self, server: ServerName, message: types.ServerNotification | AnyNotification) -> None:
        if self._on_news is not None:
            await self._on_news(server, message)

    async def _heard_alone(
        self, client: str, server: ServerName, message: types.ServerNotification | AnyNotification
    ) -> None:
        if isinstance(message, AnyNotification):
            await self._heard(server, message.model_copy(update={"client": client}))

    def _tell(self, upstream: Upstream) -> None:
        status = upstream.status
        self._events.emit(
            ServerChanged(
                at=self._clock.time(), server=status.name, state=status.state, reason=status.reason, tools=status.tools
            )
        )

    async def _notify(self) -> None:
        if self._on_change is not None:
            try:
                await self._on_change()
            except Exception:
                LOGGER.exception("A listener failed on a change of the servers")
        async with self._settled:
            self._settled.notify_all()


async def _tell_roots_changed(upstream: Upstream) -> None:
    """Raises nothing: it runs beside all servers, and would end them."""
    try:
        await upstream.tell_roots_changed()
    except Exception:
        LOGGER.exception("Server %s could not be told of changed roots", upstream.spec.name)


async def _unheard(*_news: object) -> None:
    """A listener that ignores everything."""
