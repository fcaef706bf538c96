"""Answers `tools/call` as a middleware of the SDK's server, in place of its handler.

The SDK would build models of the arguments and of the result, to no end: the server behind the gateway gets the
arguments as they came, and its result was validated when it arrived.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult
from mcp_types import methods
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pegboard.gateways.mcp.gateway.caller import CallContext, Caller, Notify
from pegboard.gateways.mcp.transport.client_connection import connection_of
from pegboard.gateways.mcp.transport.client_input import ClientOrigin
from pegboard.gateways.mcp.transport.results import Context, foreign_meta, shaped
from pegboard.model import JsonObject

CALL = "tools/call"
PLAIN = frozenset({"name", "arguments", "_meta"})
"""The parameters of a call that brings no answers to earlier questions and wants no task."""


class CallHandler:
    """``connected`` is the caller behind a request."""

    def __init__(self, connected: Callable[[Context], Caller]) -> None:
        self._connected = connected

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Raises ValidationError for parameters that the protocol does not allow, which the SDK reports."""
        if ctx.method != CALL or not is_open(ctx, CALL):
            return await call_next(ctx)
        params = ctx.params or {}
        if "task" not in params or ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            methods.validate_client_request(CALL, ctx.protocol_version, params)
        brings = None if PLAIN.issuperset(params) else types.CallToolRequestParams.model_validate(params, by_name=False)
        return shaped(ctx, await self._called(ctx, params["name"], params.get("arguments") or {}, brings))

    async def handle(self, ctx: Context, params: types.CallToolRequestParams) -> dict[str, Any]:
        """The SDK's handler, for the capability that it declares."""
        return shaped(ctx, await self._called(ctx, params.name, params.arguments or {}, params))

    async def _called(
        self, ctx: Context, name: str, arguments: JsonObject, brings: types.CallToolRequestParams | None
    ) -> dict[str, Any]:
        gateway, caller = ctx.lifespan_context, self._connected(ctx)
        if brings is not None and brings.task is not None and not caller.modern:
            gateway.tasks.connect(caller.session, ctx.session.send_notification)
        origin = ClientOrigin(ctx, caller, level=gateway.levels.of(caller.session))
        meta = foreign_meta(ctx) | ({types.LOG_LEVEL_META_KEY: origin.log_level} if origin.log_level else {})
        context = CallContext(caller=caller, meta=meta, progress=origin.progress, notify=list_changed_notifier(ctx))
        return await gateway.pending_inputs.result(ctx, brings, origin, partial(gateway.call, name, arguments, context))


def is_open(ctx: Context, method: str) -> bool:
    """Whether requests of this client are answered: it has introduced itself, with a revision that has the method."""
    connection = connection_of(ctx)
    known = (method, ctx.protocol_version) in methods.CLIENT_REQUESTS
    return known and connection is not None and connection.initialize_accepted


def list_changed_notifier(ctx: Context) -> Notify:
    """Sends list_changed on the stream of this request's answer, if the transport has a stream for each request."""

    async def notify() -> None:
        await ctx.session.send_notification(types.ToolListChangedNotification(), related_request_id=ctx.request_id)

    return notify
