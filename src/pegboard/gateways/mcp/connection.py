"""What a connection says of its client: era, session, kind, and the exposure it asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args

from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pegboard.errors import ConfigError
from pegboard.gateways.mcp.caller import Caller
from pegboard.gateways.mcp.clients import ClientKind
from pegboard.settings import Exposure

SESSION_KEY = "pegboard.session"
"""Where the HTTP door leaves the id of a handshake session in the ASGI scope."""
SESSION_HEADER = "x-pegboard-session"
EXPOSURE_HEADER = "x-pegboard-exposure"
EXPOSURE_PARAMETER = "exposure"
STREAM = "stream"
"""The one session of a pair of streams: it lives as long as the process."""

KindOf = Callable[[str, str | None], ClientKind]


def caller_of(ctx: ServerRequestContext[Any, Any], kind_of: KindOf) -> Caller:
    """Who sent this request.

    A session is the process on stdio, the protocol's own id on HTTP, and, since revision 2026-07-28 has none, what
    the client chooses to call it in the header `x-pegboard-session`.
    """
    modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    client = ctx.session.client_params
    info = client.client_info if client else None
    kind = kind_of(info.name, info.title) if info else kind_of("", None)
    if ctx.request is None:
        return Caller(session=STREAM, kind=kind, modern=modern)
    request = ctx.request
    named = request.headers.get(SESSION_HEADER)
    session = (named and f"named:{named}") if modern else request.scope.get(SESSION_KEY)
    return Caller(
        session=session, kind=kind, modern=modern, exposure=wished(request.headers, dict(request.query_params))
    )


def wished(headers: Mapping[str, str], parameters: Mapping[str, str]) -> Exposure | None:
    """The exposure a connection asks for, by header or address. Raises ConfigError for one there is not."""
    value = headers.get(EXPOSURE_HEADER) or parameters.get(EXPOSURE_PARAMETER)
    if not value or value == "auto":
        return None
    for known in get_args(Exposure):
        if value == known:
            return known  # type: ignore[no-any-return]
    raise ConfigError(f"There is no exposure {value!r}.", remedy=f"Use one of: auto, {', '.join(get_args(Exposure))}.")
