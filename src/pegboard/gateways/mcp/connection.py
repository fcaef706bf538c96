"""What a connection says of its client: era, session, kind, and the exposure it asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args
from uuid import uuid4

from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request

from pegboard.errors import ConfigError
from pegboard.gateways.mcp.access import HOLDER_KEY, Holder
from pegboard.gateways.mcp.caller import Caller
from pegboard.gateways.mcp.clients import ClientKind
from pegboard.settings import Exposure

SESSION_KEY = "pegboard.session"
"""Where the HTTP door leaves the id of a handshake session in the ASGI scope."""
END_KEY = "pegboard.end"
SESSION_HEADER = "x-pegboard-session"
NAMED_PREFIX = "named:"
EXPOSURE_HEADER = "x-pegboard-exposure"
EXPOSURE_PARAMETER = "exposure"
STREAM = "stream"
"""The session of a pair of streams: it lives as long as they do."""

KindOf = Callable[[str, str | None], ClientKind]


def caller_of(ctx: ServerRequestContext[Any, Any], kind_of: KindOf) -> Caller:
    """Who sent this request.

    A session is the connection on stdio, the protocol's own id on HTTP, and, since revision 2026-07-28 has none, what
    the client chooses to call it in the header `x-pegboard-session`.
    """
    modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    client = ctx.session.client_params
    info = client.client_info if client else None
    kind = kind_of(info.name, info.title) if info else kind_of("", None)
    if ctx.request is None:
        return Caller(session=STREAM if modern else _stream_of(ctx), kind=kind, modern=modern)
    request = ctx.request
    named, holder = request.headers.get(SESSION_HEADER), request.scope.get(HOLDER_KEY)
    session = (named and named_session(named, holder)) if modern else _handshake_session(ctx, request)
    wish = wished(request.headers, dict(request.query_params))
    return Caller(session=session, kind=kind, modern=modern, exposure=wish, holder=holder)


def named_session(name: str, holder: Holder | None) -> str:
    """What a session is called here to which its client gave a name: the same name of two holders is two sessions."""
    return f"{NAMED_PREFIX}{f'{holder.name}:' if holder else ''}{name}"


def at_end(ctx: ServerRequestContext[Any, Any], forget: Callable[[], None]) -> None:
    """Have ``forget`` called when the connection of this request ends; only the first one that is given counts."""
    connection = _connection(ctx)
    if connection is not None and END_KEY not in connection.state:
        connection.state[END_KEY] = True
        connection.exit_stack.callback(forget)


def _stream_of(ctx: ServerRequestContext[Any, Any]) -> str:
    """A process may serve several pairs of streams: each is a conversation of its own."""
    connection = _connection(ctx)
    return STREAM if connection is None else str(connection.state.setdefault(SESSION_KEY, f"{STREAM}:{uuid4().hex}"))


def _handshake_session(ctx: ServerRequestContext[Any, Any], request: Request) -> str | None:
    """As our own door says, or as the SDK's does; None where the SDK serves without sessions."""
    if SESSION_KEY in request.scope:
        return str(request.scope[SESSION_KEY])
    connection = _connection(ctx)
    return request.headers.get(MCP_SESSION_ID_HEADER) if connection is None else connection.session_id


def _connection(ctx: ServerRequestContext[Any, Any]) -> Connection | None:
    """What the SDK shows to no handler, although it is where it keeps what lasts from one request to the next."""
    return getattr(ctx.session, "_connection", None)


def wished(headers: Mapping[str, str], parameters: Mapping[str, str]) -> Exposure | None:
    """The exposure a connection asks for, by header or address. Raises ConfigError for one there is not."""
    value = headers.get(EXPOSURE_HEADER) or parameters.get(EXPOSURE_PARAMETER)
    if not value or value == "auto":
        return None
    for known in get_args(Exposure):
        if value == known:
            return known  # type: ignore[no-any-return]
    raise ConfigError(f"There is no exposure {value!r}.", remedy=f"Use one of: auto, {', '.join(get_args(Exposure))}.")
