"""Answers `tools/list` as a middleware of the SDK's server, in place of its handler.

The SDK would build models of all definitions and dump them again for every list, and each list would be measured for
pages. Both depend on the definitions alone, so the latest lists keep what came of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult
from mcp_types import methods
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pegboard.gateways.mcp.gateway.caller import Caller
from pegboard.gateways.mcp.transport.call_handler import is_open
from pegboard.gateways.mcp.transport.results import HINTS, Context, PageCheck, page, without_output_schema
from pegboard.model import JsonObject

LIST = "tools/list"
MOST_KEPT = 16
"""Answers that are kept: clients of one kind and rights are listed the same, page by page."""


class ListHandler:
    """``connected`` is the caller behind a request."""

    def __init__(self, connected: Callable[[Context], Caller]) -> None:
        self._connected = connected
        self._check = PageCheck(LIST, "tools")

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Raises ValidationError for parameters that the protocol does not allow, which the SDK reports."""
        if ctx.method != LIST or not is_open(ctx, LIST):
            return await call_next(ctx)
        params = ctx.params or {}
        methods.validate_client_request(LIST, ctx.protocol_version, params)
        return await self._listed(ctx, params.get("cursor"))

    async def handle(self, ctx: Context, params: types.PaginatedRequestParams | None) -> dict[str, Any]:
        """The SDK's handler, for the capability that it declares."""
        return await self._listed(ctx, params.cursor if params else None)

    async def _listed(self, ctx: Context, cursor: str | None) -> dict[str, Any]:
        gateway = ctx.lifespan_context
        definitions, known = await gateway.list_tools(self._connected(ctx)), gateway.listings
        for version, place, before, answer in known:
            if version == ctx.protocol_version and place == cursor and before == definitions:
                return dict(answer)
        found = page(definitions, cursor)
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            found["tools"] = [_for_handshake(each) for each in found["tools"]]
        answer = self._check.passed(ctx, found | HINTS)
        known.insert(0, (ctx.protocol_version, cursor, definitions, answer))
        del known[MOST_KEPT:]
        return dict(answer)


def _for_handshake(definition: JsonObject) -> JsonObject:
    """The definition without an output schema that is not of an object, which only revision 2026-07-28 allows."""
    schema = definition.get("outputSchema")
    if schema is None or (isinstance(schema, dict) and schema.get("type") == "object"):
        return definition
    return without_output_schema(definition)
