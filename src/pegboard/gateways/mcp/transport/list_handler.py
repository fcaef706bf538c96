"""Answers `tools/list` as a middleware of the SDK's server, in place of its handler.

The SDK would build models of all definitions and dump them again for every list, and each list would be measured for
pages. Both depend on the definitions alone, so the latest lists keep what came of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult
from mcp_types import methods
from pydantic import ValidationError

from pegboard.gateways.mcp.gateway.caller import Caller
from pegboard.gateways.mcp.transport.call_handler import is_open
from pegboard.gateways.mcp.transport.results import HINTS, Context, page, shaped
from pegboard.model import JsonObject

LOGGER = logging.getLogger(__name__)
LIST = "tools/list"
MOST_KEPT = 16
"""Answers that are kept: clients of one kind and rights are listed the same, page by page."""


class ListHandler:
    """``connected`` is the caller behind a request."""

    def __init__(self, connected: Callable[[Context], Caller]) -> None:
        self._connected = connected

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
        answer = shaped(ctx, page(definitions, cursor) | HINTS)
        _validate(ctx.protocol_version, answer)
        known.insert(0, (ctx.protocol_version, cursor, definitions, answer))
        del known[MOST_KEPT:]
        return dict(answer)


def _validate(version: str, answer: JsonObject) -> None:
    """Raises MCPError for definitions that break the protocol, as the SDK does: what they say is for the log alone."""
    try:
        methods.serialize_server_result(LIST, version, dict(answer))
    except ValidationError:
        LOGGER.exception("A definition to be listed breaks the protocol")
        raise MCPError(types.INTERNAL_ERROR, "Handler returned an invalid result") from None
