"""Results on the wire: dictionaries as handlers made them, shaped for the client's protocol era, and pages of lists."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pegboard.catalog import compact_json
from pegboard.gateways.mcp.gateway.gateway import Gateway
from pegboard.model import JsonObject

LIST_TTL_MS = 5000
HINTS = {"ttlMs": LIST_TTL_MS, "cacheScope": "private"}
"""What revision 2026-07-28 requires of lists; a list that depends on the caller is never public (M25)."""
MODERN_KEYS = frozenset({"resultType", "ttlMs", "cacheScope"})
"""Keys that results have in revision 2026-07-28 only."""
OURS = ("progressToken",)
RESERVED_PREFIX = "io.modelcontextprotocol/"
Context = ServerRequestContext[Gateway, Any]
"""A request. Its `lifespan_context` is the gateway that it is for: one server answers for those of all users."""
HANDLER_RESULTS: ContextVar[list[dict[str, Any]] | None] = ContextVar("handler_results", default=None)
"""The list of a request in which its handler leaves the result for the middleware `verbatim`."""
PAGE_BYTES = 400_000
MARK_LENGTH = 12
MOST_DIGITS = 9


def kept(ctx: Context, result: Mapping[str, Any]) -> dict[str, Any]:
    """The result in the shape of the caller's era, which the middleware `verbatim` then sends."""
    found = shaped(ctx, result)
    results = HANDLER_RESULTS.get()
    if results is not None:
        results.append(found)
    return found


def shaped(ctx: Context, result: Mapping[str, Any]) -> dict[str, Any]:
    """The result in the shape of the caller's era."""
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return {"resultType": "complete"} | dict(result)
    return {key: value for key, value in result.items() if key not in MODERN_KEYS}


def foreign_meta(ctx: Context) -> dict[str, Any]:
    """The caller's own `_meta` keys, without those of the protocol, which are valid for one hop."""
    sent = (ctx.params or {}).get("_meta") or {}
    return {key: value for key, value in sent.items() if key not in OURS and not key.startswith(RESERVED_PREFIX)}


def page(
    definitions: Sequence[JsonObject], cursor: str | None, *, part: str = "tools", identity: str = "name"
) -> dict[str, Any]:
    """One page of the list, under ``part``, and the cursor of the next page if there is one.

    Clients of the handshake era read no message above 1 MiB (MCP 2025-11-25, pagination). A cursor contains a hash of
    its list: raises MCPError (invalid params) if the list has changed since.
    """
    sizes = [len(_bytes(compact_json(each))) for each in definitions]
    if cursor is None and sum(sizes) <= PAGE_BYTES:
        return {part: list(definitions)}
    mark = _mark(definitions, identity)
    start = _start(cursor, mark)
    end, taken = start, 0
    while end < len(sizes) and (end == start or taken + sizes[end] <= PAGE_BYTES):
        taken += sizes[end]
        end += 1
    found: dict[str, Any] = {part: list(definitions[start:end])}
    return found | ({"nextCursor": f"{mark}.{end}"} if end < len(sizes) else {})


def _start(cursor: str | None, mark: str) -> int:
    if cursor is None:
        return 0
    of_list, _, place = cursor.partition(".")
    if of_list != mark or not place.isdecimal() or len(place) > MOST_DIGITS:
        raise MCPError(types.INVALID_PARAMS, "The list changed: start again without a cursor.")
    return int(place)


def _mark(definitions: Sequence[JsonObject], identity: str = "name") -> str:
    names = "\0".join(str(each[identity]) for each in definitions)
    return hashlib.sha256(_bytes(names)).hexdigest()[:MARK_LENGTH]


def _bytes(text: str) -> bytes:
    """The UTF-8 bytes; servers also send lone surrogates."""
    return text.encode("utf-8", "surrogatepass")
