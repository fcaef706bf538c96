"""The HTTP door: streamable HTTP at /mcp and /mcp/TOOLSET, for both protocol eras; /healthz beside it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import anyio
from anyio.abc import TaskStatus
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from pegboard.errors import ConfigError, PegboardError
from pegboard.gateways.mcp import access
from pegboard.gateways.mcp.affinity import Affinity
from pegboard.gateways.mcp.connection import wished
from pegboard.gateways.mcp.forwarding import Forwarder
from pegboard.gateways.mcp.gateway import Gateway
from pegboard.gateways.mcp.host import Host, NoToolset
from pegboard.gateways.mcp.messages import header
from pegboard.gateways.mcp.peers import Peers
from pegboard.gateways.mcp.resuming import ResumableSessions
from pegboard.gateways.mcp.revival import SESSION, Revival
from pegboard.gateways.mcp.server import wire

PATH = "/mcp"
HEALTH = "/healthz"
WHITE_SPACE = b" \t"
"""Around a header's value it is not part of it (RFC 9110, 5.5), and servers of HTTP may leave it there."""
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One gateway on the wire."""

    gateway: Gateway
    app: Revival | Affinity
    scope: anyio.CancelScope


class NoSession(PegboardError):  # noqa: N818
    """A session that nobody began, or somebody else."""

    code = "session_not_found"
    http_status = 404

    def __init__(self) -> None:
        super().__init__("There is no such session.", remedy="Begin one with `initialize`.")


class HttpDoor:
    """An ASGI application before a host. Serve it within `running`, and end it there with `hang_up`.

    With ``peers``, each session's requests go to the process that has it.
    """

    def __init__(
        self, host: Host, *, health: Callable[[], Mapping[str, Any]] = dict, peers: Peers | None = None
    ) -> None:
        self._host = host
        self._health = health
        self._peers = peers
        self._forwarder = Forwarder(peers) if peers else None
        ours = [urlsplit(peers.me.url).hostname or ""] if peers else []
        self.security = guard(host.settings.host, (*host.settings.allowed_hosts, *ours), host.settings.allowed_origins)
        self._guard = TransportSecurityMiddleware(self.security)
        self._endpoints: dict[str, Endpoint] = {}
        self._tasks = anyio.create_task_group()
        self._opening = anyio.Lock()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[HttpDoor]:
        async with AsyncExitStack() as stack:
            if self._forwarder is not None:
                await stack.enter_async_context(self._forwarder.opened())
            await stack.enter_async_context(self._tasks)
            stack.callback(self.hang_up)
            yield self

    def hang_up(self) -> None:
        """End every connection."""
        for endpoint in self._endpoints.values():
            endpoint.scope.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        scope = {**scope, "headers": [(name, value.strip(WHITE_SPACE)) for name, value in scope["headers"]]}
        answer = await self._answer(scope, receive, send)
        if answer is not None:
            await answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> Response | None:
        path = scope["path"].rstrip("/")
        if path == HEALTH:
            refused = await self._guard.validate_request(Request(scope))
            more = {} if self._host.access.needed else dict(self._health())
            return refused or JSONResponse({"status": "ok"} | more)
        if path != PATH and not path.startswith(f"{PATH}/"):
            remedy = f"MCP is at {PATH}; models are served where the configuration has [llm]."
            return _error(ConfigError(f"Nothing is served at {path or '/'!r}.", remedy=remedy), 404)
        request = Request(scope)
        toolset = path[len(PATH) + 1 :]
        try:
            holder = self._host.access.holder(scope["headers"])
            wished(request.headers, dict(request.query_params))
            endpoint = await self._endpoint(toolset)
            access.check_scope(holder, self._host.scope_of(toolset))
        except access.Unauthorized as error:
            return access.refused(error)
        except PegboardError as error:
            return _error(error, 404 if isinstance(error, NoToolset) else 400)
        session = header(scope["headers"], SESSION)
        if holder is not None and session is not None and not await self._host.signing.owns(holder, session):
            return _error(NoSession(), NoSession.http_status)
        await endpoint.app(dict(scope) | {access.HOLDER_KEY: holder}, receive, send)
        return None

    async def _endpoint(self, toolset: str) -> Endpoint:
        """Where this toolset is served now. Raises NoToolset, also for one that is gone from the configuration."""
        async with self._opening:
            known = self._endpoints.get(toolset)
            try:
                gateway = self._host.gateway(toolset)
            except NoToolset:
                if known is not None:
                    self._endpoints.pop(toolset).scope.cancel()
                raise
            if known is not None and known.gateway is not gateway:  # it was gone, and nobody asked meanwhile
                known.scope.cancel()
                known = None
            if known is None:
                self._endpoints[toolset] = await self._tasks.start(self._serve, gateway, toolset)
            return self._endpoints[toolset]

    async def _serve(self, gateway: Gateway, toolset: str, *, task_status: TaskStatus[Endpoint]) -> None:
        """One toolset's endpoint, for as long as the door is open and the toolset there."""
        sealed = self._host.signing.states(f"pegboard/{toolset}")
        manager = ResumableSessions(wire(gateway, sealed), security_settings=self.security)
        with anyio.CancelScope() as scope:
            async with manager.run():
                task_status.started(Endpoint(gateway=gateway, app=self._app(manager, gateway), scope=scope))
                await anyio.sleep_forever()

    def _app(self, manager: StreamableHTTPSessionManager, gateway: Gateway) -> Revival | Affinity:
        local = Revival(manager.handle_request, gateway, self._host.signing)
        if self._peers is None or self._forwarder is None:
            return local
        return Affinity(local, gateway, self._peers, self._forwarder)


def guard(host: str, allowed: tuple[str, ...], pages: tuple[str, ...] = ()) -> TransportSecuritySettings:
    """Answers only to names this server is known by: a page in a browser cannot rebind its own to this machine.

    ``pages`` are the origins of further ones that may use it.
    """
    ours = f"[{host}]" if ":" in host else host
    names = [*LOOPBACK, *([ours] if host not in ("", "0.0.0.0", "::") else [])]  # noqa: S104
    hosts = [each for name in (*names, *allowed) for each in (name, f"{name}:*")]
    origins = [f"{scheme}://{name}" for scheme in ("http", "https") for name in hosts]
    return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[*origins, *pages])


def _error(error: PegboardError, status: int) -> JSONResponse:
    return JSONResponse(error.payload(), status_code=status)
