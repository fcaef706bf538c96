"""Results as they go on the wire: the dictionaries that handlers made, in the words of the caller's era."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

LIST_TTL_MS = 5000
HINTS = {"ttlMs": LIST_TTL_MS, "cacheScope": "private"}
"""What revision 2026-07-28 wants to know of lists; what depends on who asks is never public (M25)."""
MODERN_KEYS = frozenset({"resultType", "ttlMs", "cacheScope"})
"""What results of revision 2026-07-28 carry beyond those of the handshake era."""

OURS = ("progressToken",)
RESERVED_PREFIX = "io.modelcontextprotocol/"

Context = ServerRequestContext[Any, Any]

_verbatim: ContextVar[list[dict[str, Any]] | None] = ContextVar("verbatim", default=None)
"""Where a handler leaves its result for the middleware, one list a request."""


async def verbatim(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Sends what a handler made, where the SDK would drop the fields its models do not know (M7).

    The SDK still checks it on the way: a result that breaks the protocol is an error, as ever.
    """
    kept: list[dict[str, Any]] = []
    token = _verbatim.set(kept)
    try:
        shaped = await call_next(ctx)
    finally:
        _verbatim.reset(token)
    return kept[0] if kept else shaped


def kept(ctx: Context, result: Mapping[str, Any]) -> dict[str, Any]:
    """The result in the envelope of the caller's era, left for `verbatim`."""
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        shaped = {"resultType": "complete"} | dict(result)
    else:
        shaped = {key: value for key, value in result.items() if key not in MODERN_KEYS}
    holder = _verbatim.get()
    if holder is not None:
        holder.append(shaped)
    return shaped


def foreign_meta(ctx: Context) -> dict[str, Any]:
    """The caller's own `_meta` keys; those of the protocol belong to each hop."""
    sent = (ctx.params or {}).get("_meta") or {}
    return {key: value for key, value in sent.items() if key not in OURS and not key.startswith(RESERVED_PREFIX)}
