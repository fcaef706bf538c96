"""What a connection says about its client: era, session, kind, and the exposure it asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args
from uuid import uuid4

from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request

from pegboard.call_charges import STREAM
from pegboard.errors import ConfigError
from pegboard.gateways.mcp.gateway.caller import Caller
from pegboard.gateways.mcp.gateway.clients import ClientKind
from pegboard.gateways.mcp.transport.auth import HOLDER_KEY, Holder
from pegboard.settings import Exposure
from pegboard.settings.result_settings import ResultForm, form_named
from pegboard.upstreams.extension_requests import APPS

SESSION_KEY = "pegboard.session"
"""The key of the ASGI scope under which the HTTP door stores the id of a handshake session."""
EXPOSURE_KEY = "pegboard.exposure"
"""The key of the ASGI scope under which the HTTP door stores the exposure that the request asks for."""
END_KEY = "pegboard.end"
SESSION_HEADER = "x-pegboard-session"
NAMED_PREFIX = "named:"
EXPOSURE_HEADER = "x-pegboard-exposure"
EXPOSURE_PARAMETER = "exposure"
RESULTS_HEADER = "x-pegboard-results"

KindOf = Callable[[str, str | None], ClientKind]


def caller_of(ctx: ServerRequestContext[Any, Any], kind_of: KindOf, exposure: Exposure | None = None) -> Caller:
    """The caller of this request. ``exposure`` is what the command asks for that serves this pair of streams.

    Its session is the connection on stdio, the protocol's session id on HTTP, and in revision 2026-07-28, which has no
    sessions, the name in the client's header `x-pegboard-session`.
    """
    modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    client = ctx.session.client_params
    info = client.client_info if client else None
    kind = kind_of(info.name, info.title) if info else kind_of("", None)
    capabilities = ctx.session.client_capabilities
    apps = capabilities is not None and APPS in (capabilities.extensions or {})
    if ctx.request is None:
        stream = STREAM if modern else _stream_of(ctx)
        return Caller(session=stream, kind=kind, modern=modern, exposure=exposure, apps=apps)
    request = ctx.request
    named, holder = request.headers.get(SESSION_HEADER), request.scope.get(HOLDER_KEY)
    session = (named and named_session(named, holder)) if modern else _handshake_session(ctx, request)
    if EXPOSURE_KEY in request.scope:
        wish = request.scope[EXPOSURE_KEY]
    else:
        wish = wished(request.headers, dict(request.query_params))
    return Caller(
        session=session,
        kind=kind,
        modern=modern,
        exposure=wish,
        holder=holder,
        apps=apps,
        results=results_wished(request.headers),
    )


def named_session(name: str, holder: Holder | None) -> str:
    """The key of a session that its client named: the same name from two holders means two sessions.

    >>> named_session("b:c", Holder(name="a", secret="1")) == named_session("c", Holder(name="a:b", secret="2"))
    False
    """
    if holder is None:
        return f"{NAMED_PREFIX}{name}"
    kind = "subject" if holder.is_subject else "token"
    return f"{NAMED_PREFIX}{kind}:{len(holder.name)}:{holder.name}:{name}"


def at_end(ctx: ServerRequestContext[Any, Any], forget: Callable[[], None]) -> None:
    """Call ``forget`` when the connection of this request ends. Only the first callback of a connection is used."""
    connection = connection_of(ctx)
    if connection is not None and END_KEY not in connection.state:
        connection.state[END_KEY] = True
        connection.exit_stack.callback(forget)


def _stream_of(ctx: ServerRequestContext[Any, Any]) -> str:
    """The session of a pair of streams. A process may serve several pairs, each with its own conversation."""
    connection = connection_of(ctx)
    return STREAM if connection is None else str(connection.state.setdefault(SESSION_KEY, f"{STREAM}:{uuid4().hex}"))


def _handshake_session(ctx: ServerRequestContext[Any, Any], request: Request) -> str | None:
    """The id from the HTTP door or else from the SDK; None if the SDK serves without sessions."""
    if SESSION_KEY in request.scope:
        return str(request.scope[SESSION_KEY])
    connection = connection_of(ctx)
    return request.headers.get(MCP_SESSION_ID_HEADER) if connection is None else connection.session_id


def connection_of(ctx: ServerRequestContext[Any, Any]) -> Connection | None:
    """The SDK's connection object, which holds state between requests but is not exposed to handlers."""
    return getattr(ctx.session, "_connection", None)


def results_wished(headers: Mapping[str, str]) -> ResultForm | None:
    """The form of results that a header asks for. Raises ConfigError for an unknown one."""
    value = headers.get(RESULTS_HEADER)
    return form_named(value) if value else None


def wished(headers: Mapping[str, str], parameters: Mapping[str, str]) -> Exposure | None:
    """The exposure that a header or the address asks for. Raises ConfigError for an unknown one."""
    value = headers.get(EXPOSURE_HEADER) or parameters.get(EXPOSURE_PARAMETER)
    if not value or value == "auto":
        return None
    for known in get_args(Exposure):
        if value == known:
            return known  # type: ignore[no-any-return]
    raise ConfigError(f"There is no exposure {value!r}.", remedy=f"Use one of: auto, {', '.join(get_args(Exposure))}.")
