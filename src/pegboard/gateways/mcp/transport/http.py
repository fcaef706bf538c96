"""The MCP gateway on HTTP: streamable HTTP at /mcp and /mcp/TOOLSET, for both protocol eras, and /healthz."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import anyio
import mcp_types as types
from mcp.server.transport_security import (
    RequestBodyLimitMiddleware,
    TransportSecurityMiddleware,
    TransportSecuritySettings,
)
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from pegboard.caller_limits import ANYONE, RateLimitReached
from pegboard.errors import ConfigError, PegboardError
from pegboard.gateways.issuer import IssuerUnavailable
from pegboard.gateways.mcp.attach.serve_discovery import has_proof
from pegboard.gateways.mcp.cluster.forwarder import FORWARDED, Forwarder, ForwardOutcome
from pegboard.gateways.mcp.cluster.http_messages import ReplayableBody, header, received
from pegboard.gateways.mcp.cluster.peers import Peers, mark_of
from pegboard.gateways.mcp.cluster.session_affinity import SessionAffinity
from pegboard.gateways.mcp.cluster.session_recovery import SESSION, SessionRecovery
from pegboard.gateways.mcp.gateway.gateway import Gateway
from pegboard.gateways.mcp.gateway.host import Host, NoToolset
from pegboard.gateways.mcp.gateway.user_boards import TooManyUsers, UserEndpoint
from pegboard.gateways.mcp.transport import auth, sign_in_pages
from pegboard.gateways.mcp.transport.client_connection import EXPOSURE_KEY, results_wished, wished
from pegboard.gateways.mcp.transport.gateway_server import gateway_server
from pegboard.gateways.mcp.transport.handshake_sessions import ResumableSessions

PATH = "/mcp"
HEALTH = "/healthz"
WHITE_SPACE = b" \t"
"""White space around a header's value, which is not part of it (RFC 9110, 5.5) but which HTTP servers may leave
there."""
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """The endpoint of one gateway."""

    gateway: Gateway
    app: ASGIApp
    close: Callable[[], None]


class NoSession(PegboardError):  # noqa: N818
    """The session does not exist, or belongs to another holder."""

    code = "session_not_found"
    http_status = 404

    def __init__(self) -> None:
        super().__init__("There is no such session.", remedy="Start one with `initialize`.")


class HttpDoor:
    """The ASGI application of a host. Serve it within `running`, and end its connections with `hang_up`.

    With ``peers``, requests of a session are forwarded to the process that owns it.
    """

    def __init__(
        self, host: Host, *, health: Callable[[], Mapping[str, Any]] = dict, peers: Peers | None = None
    ) -> None:
        self._host = host
        self._health = health
        self._peers = peers
        self._forwarder = Forwarder(peers) if peers else None
        host.sign_ins.mark = mark_of(peers.me) if peers else ""
        ours = [urlsplit(peers.me.url).hostname or ""] if peers else []
        self.security = guard(host.settings.host, (*host.settings.allowed_hosts, *ours), host.settings.allowed_origins)
        self._guard = TransportSecurityMiddleware(self.security)
        self._endpoints: dict[tuple[str, str], Endpoint] = {}
        """By toolset and user."""
        self._tasks = anyio.create_task_group()
        self._server = gateway_server(host.signing.states, tracer=host.parts.tracer)

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
        for endpoint in list(self._endpoints.values()):
            endpoint.close()

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
            request = Request(scope)
            refused = await self._guard.validate_request(request)
            more = {} if self._host.access.needed and not has_proof(request.headers) else dict(self._health())
            return refused or JSONResponse({"status": "ok"} | more)
        if path == auth.WELL_KNOWN or path.startswith(f"{auth.WELL_KNOWN}/"):
            return self._metadata(path)
        if path != PATH and not path.startswith(f"{PATH}/"):
            if sign_in_pages.is_page(path) and self._host.settings.has_users:
                return await self._sign_in_page(scope, receive, send)
            remedy = f"MCP is at {PATH}; models are served if [llm] is configured."
            return _error(ConfigError(f"Nothing is served at {path or '/'!r}.", remedy=remedy), 404)
        request = Request(scope)
        toolset = path[len(PATH) + 1 :]
        try:
            holder = await self._host.access.holder(scope["headers"])
            wish = wished(request.headers, dict(request.query_params) if scope["query_string"] else {})
            results_wished(request.headers)
            user = self._host.user_of(holder)
            endpoint = self._endpoint(toolset, user)
            auth.check_scope(holder, self._host.scope_of(toolset))
            if (self._host.rates.limits or holder is not None) and not self._is_counted(scope):
                await self._host.rates.admit_request(ANYONE if holder is None else holder.limited)
        except RateLimitReached as error:
            return _too_many(error)
        except auth.Unauthorized as error:
            issuer, needed = self._host.settings.issuer, self._host.scope_of(toolset)
            return auth.refused(error, "" if issuer is None else auth.metadata_url(issuer, toolset), needed)
        except IssuerUnavailable as error:
            return _error(error, error.http_status)
        except PegboardError as error:
            return _error(error, error.http_status if isinstance(error, NoToolset | TooManyUsers) else 400)
        session = header(scope["headers"], SESSION)
        if holder is not None and session is not None and not await self._host.signing.owns(holder, session):
            return _error(NoSession(), NoSession.http_status)
        told = {**scope, auth.HOLDER_KEY: holder, EXPOSURE_KEY: wish}
        busy = self._host.users.board(user).in_use() if user else nullcontext()
        with busy:
            await endpoint.app(told, receive, send)
        return None

    async def _sign_in_page(self, scope: Scope, receive: Receive, send: Send) -> Response | None:
        """A page of a sign-in, from the process in which that is under way. None if it was sent."""
        body = await sign_in_pages.form(receive)
        if self._peers is not None and self._forwarder is not None and len(body) < sign_in_pages.LONGEST_FORM:
            there = self._peers.marked(sign_in_pages.mark(scope))
            if there is not None and header(scope["headers"], FORWARDED) is None:
                replay = ReplayableBody(received(body, receive))
                if await self._forwarder.forward(there, scope, replay, send) is ForwardOutcome.ANSWERED:
                    return None
                self._peers.lost(there)
        return sign_in_pages.answer(scope, self._host.sign_ins.returns, body)

    def _is_counted(self, scope: Scope) -> bool:
        """Whether the process that forwarded this request has counted it. No client knows the id of a process."""
        bringer = header(scope["headers"], FORWARDED)
        return bringer is not None and self._peers is not None and self._peers.knows(bringer)

    def _metadata(self, path: str) -> Response:
        """The metadata of the resource, at the address of RFC 9728, section 3.1, for each of its endpoints."""
        settings = self._host.settings
        if settings.issuer is None:
            return _error(ConfigError("No authorization server is configured.", remedy="Set [issuer]."), 404)
        resource = urlsplit(settings.issuer.resource).path.rstrip("/")
        toolset = path.removeprefix(auth.WELL_KNOWN).removeprefix(resource).strip("/")
        if toolset and toolset not in settings.toolsets:
            return _error(NoToolset(toolset, settings.toolsets), 404)
        scope = self._host.scope_of(toolset)
        return auth.protected_resource(settings.issuer, [scope] if scope else settings.grants, toolset)

    def _endpoint(self, toolset: str, user: str) -> Endpoint:
        """The endpoint of this toolset, for this user if some servers are connected by user. Raises NoToolset, also if
        it was removed from the configuration, and TooManyUsers."""
        key = (toolset, user)
        known = self._endpoints.get(key)
        if known is not None and self._host.serves(toolset, known.gateway, user):
            if user:
                self._host.users.board(user).touch()  # so that it does not rest before the request has begun
            return known
        if known is not None:  # the toolset was removed, and may have been added again
            self._endpoints.pop(key).close()
        self._endpoints[key] = self._opened(self._host.gateway(toolset, user), toolset, user)
        return self._endpoints[key]

    def _opened(self, gateway: Gateway, toolset: str, user: str) -> Endpoint:
        """An endpoint that is served until the door closes, the toolset is removed, or the user rests or is
        forgotten."""
        manager = ResumableSessions(self._server.of(gateway), security_settings=self.security)
        manager.begin(self._tasks, gateway)

        def close() -> None:
            manager.end()
            left = self._endpoints.get((toolset, user))
            if left is not None and left.close is close:
                del self._endpoints[toolset, user]

        if user:
            self._host.users.board(user).endpoints[toolset] = UserEndpoint(
                close=close, is_needed=lambda: manager.has_sessions
            )
        return Endpoint(gateway=gateway, app=self._app(manager, gateway), close=close)

    def _app(self, manager: ResumableSessions, gateway: Gateway) -> ASGIApp:
        local = SessionRecovery(manager, gateway, self._host.signing)
        if self._peers is None or self._forwarder is None:
            return local
        shared = SessionAffinity(local, gateway, self._peers, self._forwarder, self._host.signing)
        return RequestBodyLimitMiddleware(shared, manager.max_request_body_size)  # it reads bodies before the transport


def guard(host: str, allowed: tuple[str, ...], pages: tuple[str, ...] = ()) -> TransportSecuritySettings:
    """Accepts only host names by which this server is known: a web page cannot rebind its own name to this machine.

    ``pages`` are further origins that may use it.
    """
    ours = f"[{host}]" if ":" in host else host
    names = [*LOOPBACK, *([ours] if host not in ("", "0.0.0.0", "::") else [])]  # noqa: S104
    hosts = [each for name in (*names, *allowed) for each in (name, f"{name}:*")]
    origins = [f"{scheme}://{name}" for scheme in ("http", "https") for name in hosts]
    return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[*origins, *pages])


def _too_many(error: RateLimitReached) -> JSONResponse:
    """A JSON-RPC error without an id, as the body was not read (JSON-RPC 2.0, section 5)."""
    said = {"code": types.INTERNAL_ERROR, "message": str(error), "data": error.payload()}
    headers = {"retry-after": str(error.retry_after)}
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": said}, error.http_status, headers=headers)


def _error(error: PegboardError, status: int) -> JSONResponse:
    return JSONResponse(error.payload(), status_code=status)
