"""The gateway on the wire: the SDK's low-level server, results kept as the dictionaries they are."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from importlib.metadata import version
from typing import Any

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import ListenHandler
from mcp.shared.dispatcher import ProgressFnT
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pegboard.gateways.mcp import sessions
from pegboard.gateways.mcp.caller import Caller, Exchange, Notify
from pegboard.gateways.mcp.connection import caller_of
from pegboard.gateways.mcp.gateway import Gateway
from pegboard.gateways.mcp.pages import page

INSTRUCTIONS = (
    "This server stands before many others. Tools of theirs that are not listed here are found with search_tools and "
    "called with invoke_tool, or with route_tools and execute_tool where these are listed."
)
LIST_TTL_MS = 5000
MODERN_KEYS = frozenset({"resultType", "ttlMs", "cacheScope"})
"""What results of revision 2026-07-28 carry beyond those of the handshake era."""
OURS = ("progressToken",)
RESERVED_PREFIX = "io.modelcontextprotocol/"

Context = ServerRequestContext[Any, Any]

_verbatim: ContextVar[list[dict[str, Any]] | None] = ContextVar("verbatim", default=None)
"""Where a handler leaves its result for the middleware, one list a request."""


class GatewayServer(Server[Any]):
    """Announces that its list of tools changes, on every transport."""

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *more: Any, **options: Any
    ) -> InitializationOptions:
        """The SDK's own HTTP transport asks without options, and would announce the contrary."""
        given = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(given, *more, **options)


def wire(gateway: Gateway) -> Server[Any]:
    """The gateway as a server of both protocol eras."""

    async def list_tools(ctx: Context, params: types.PaginatedRequestParams | None) -> dict[str, Any]:
        caller = _connected(gateway, ctx)
        found = page(await gateway.list_tools(caller), params.cursor if params else None)
        return _kept(ctx, found | {"ttlMs": LIST_TTL_MS, "cacheScope": "private"})

    async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> dict[str, Any]:
        exchange = Exchange(
            caller=_connected(gateway, ctx), meta=_foreign_meta(ctx), progress=_progress(ctx), notify=way_back(ctx)
        )
        return _kept(ctx, await gateway.call(params.name, params.arguments or {}, exchange))

    async def initialized(ctx: Context, _params: types.NotificationParams | None) -> None:
        caller, client = _connected(gateway, ctx), ctx.session.client_params
        if caller.session is not None and client is not None:
            said = client.model_dump(by_alias=True, mode="json", exclude_none=True)
            said["protocolVersion"] = ctx.protocol_version
            await gateway.book.update(caller.session, sessions.introduced(said))

    server = GatewayServer(
        "pegboard",
        version=version("pegboard"),
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,  # type: ignore[arg-type]  # the SDK takes dictionaries as well
        on_call_tool=call_tool,  # type: ignore[arg-type]
        on_subscriptions_listen=ListenHandler(gateway.announcer.bus),
        get_tool_input_schema=gateway.input_schema,
    )
    server.add_notification_handler("notifications/initialized", types.NotificationParams, initialized)
    server.middleware.append(verbatim)
    return server


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


def _kept(ctx: Context, result: Mapping[str, Any]) -> dict[str, Any]:
    """The result in the envelope of the caller's era, left for `verbatim`."""
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        shaped = {"resultType": "complete"} | dict(result)
    else:
        shaped = {key: value for key, value in result.items() if key not in MODERN_KEYS}
    holder = _verbatim.get()
    if holder is not None:
        holder.append(shaped)
    return shaped


def _connected(gateway: Gateway, ctx: Context) -> Caller:
    """Who asks; the latest of a session's connections is where it is told of changes."""
    caller = caller_of(ctx, gateway.kind)
    if caller.session is not None and not caller.modern:
        gateway.announcer.connect(caller.session, ctx.session.send_tool_list_changed)
    return caller


def way_back(ctx: Context) -> Notify:
    """With the answer's own stream, where the transport has one for each request."""

    async def notify() -> None:
        await ctx.session.send_notification(types.ToolListChangedNotification(), related_request_id=ctx.request_id)

    return notify


def _progress(ctx: Context) -> ProgressFnT:
    """Progress goes to the request that caused it (M17); the SDK drops it where the caller did not ask for any."""

    async def report(progress: float, total: float | None, message: str | None) -> None:
        await ctx.session.report_progress(progress, total, message)

    return report


def _foreign_meta(ctx: Context) -> dict[str, Any]:
    """The caller's own `_meta` keys; those of the protocol belong to each hop."""
    sent = (ctx.params or {}).get("_meta") or {}
    return {key: value for key, value in sent.items() if key not in OURS and not key.startswith(RESERVED_PREFIX)}
