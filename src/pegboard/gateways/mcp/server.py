"""The gateway on the wire: the SDK's low-level server, results kept as the dictionaries they are."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version
from typing import Any

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity

from pegboard.gateways.mcp import sessions
from pegboard.gateways.mcp.asked_client import AskedClient
from pegboard.gateways.mcp.caller import Caller, Exchange, Notify
from pegboard.gateways.mcp.connection import at_end, caller_of
from pegboard.gateways.mcp.envelope import HINTS, foreign_meta, kept, verbatim
from pegboard.gateways.mcp.gateway import Gateway
from pegboard.gateways.mcp.in_process import as_dictionary
from pegboard.gateways.mcp.others import Others
from pegboard.gateways.mcp.pages import page

BEGINNINGS = ("initialize", "server/discover")
Context = ServerRequestContext[Any, Any]


class GatewayServer(Server[Any]):
    """Announces that its list of tools changes, on every transport."""

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *more: Any, **options: Any
    ) -> InitializationOptions:
        """The SDK's own HTTP transport asks without options, and would announce the contrary."""
        given = notification_options or NotificationOptions(
            tools_changed=True, prompts_changed=True, resources_changed=True
        )
        return super().create_initialization_options(given, *more, **options)


def wire(gateway: Gateway, sealed: RequestStateSecurity | None = None) -> Server[Any]:
    """The gateway as a server of both protocol eras. States of requests are ``sealed`` for this process alone, unless
    it is said how."""
    rounds = gateway.rounds

    def connected(ctx: Context) -> Caller:
        return _connected(gateway, ctx)

    async def list_tools(ctx: Context, params: types.PaginatedRequestParams | None) -> dict[str, Any]:
        caller = connected(ctx)
        found = page(await gateway.list_tools(caller), params.cursor if params else None)
        return kept(ctx, found | HINTS)

    async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> dict[str, Any]:
        caller = connected(ctx)
        origin = AskedClient(ctx, caller, level=gateway.levels.of(caller.session))
        meta = foreign_meta(ctx) | ({types.LOG_LEVEL_META_KEY: origin.log_level} if origin.log_level else {})
        exchange = Exchange(caller=caller, meta=meta, progress=origin.progress, notify=way_back(ctx))

        async def call() -> dict[str, Any]:
            return await gateway.call(params.name, params.arguments or {}, exchange)

        return kept(ctx, await rounds.answered(ctx, params, origin, call))

    async def initialized(ctx: Context, _params: types.NotificationParams | None) -> None:
        caller, client = connected(ctx), ctx.session.client_params
        if caller.session is not None and client is not None:
            said = client.model_dump(by_alias=True, mode="json", exclude_none=True)
            said["protocolVersion"] = ctx.protocol_version
            await gateway.book.update(caller.session, sessions.introduced(said))
            _present(gateway, ctx, caller.session)

    async def roots_changed(_ctx: Context, _params: types.NotificationParams | None) -> None:
        gateway.fleet.roots_changed()

    others = Others(gateway, rounds, connected)
    server = GatewayServer(
        "pegboard",
        version=version("pegboard"),
        on_list_tools=list_tools,  # type: ignore[arg-type]  # the SDK takes dictionaries as well
        on_call_tool=call_tool,  # type: ignore[arg-type]
        **others.handlers(),
        get_tool_input_schema=gateway.input_schema,
    )
    server.add_notification_handler("notifications/initialized", types.NotificationParams, initialized)
    server.add_notification_handler("notifications/roots/list_changed", types.NotificationParams, roots_changed)
    others.join(server)
    boundary = RequestStateBoundary(sealed or RequestStateSecurity.ephemeral(), default_audience="pegboard")
    server.middleware += [boundary, verbatim, _introduces(gateway)]
    return server


def _introduces(gateway: Gateway) -> ServerMiddleware[Any]:
    """A middleware that says at the beginning what is behind the gateway, and how it is used."""

    async def introduce(ctx: Context, call_next: CallNext) -> HandlerResult:
        result = await call_next(ctx)
        if ctx.method not in BEGINNINGS:
            return result
        caller = caller_of(ctx, gateway.kind)
        if client := (ctx.params or {}).get("clientInfo"):
            caller = replace(caller, kind=gateway.kind(client.get("name", ""), client.get("title")))
        said = await gateway.introduction(caller)
        return as_dictionary(result) | ({"instructions": said} if said else {})

    return introduce


def _present(gateway: Gateway, ctx: Context, session: str) -> None:
    """While its connection lasts, servers may ask the client for its roots outside its requests, if it has any."""
    wire = ctx.session

    async def ask() -> types.ListRootsResult:
        return await wire.send_request(types.ListRootsRequest(), types.ListRootsResult)

    capabilities = wire.client_capabilities
    gateway.fleet.join(session, ask if capabilities and capabilities.roots is not None else None)
    at_end(ctx, lambda: gateway.fleet.leave(session))


def _connected(gateway: Gateway, ctx: Context) -> Caller:
    """Who asks; the latest of a session's connections is where it is told of changes."""
    caller = caller_of(ctx, gateway.kind)
    if caller.session is not None and not caller.modern:
        gateway.announcer.connect(caller.session, ctx.session.send_tool_list_changed)
        gateway.library.prompts_news.connect(caller.session, ctx.session.send_prompt_list_changed)
        gateway.library.resources_news.connect(caller.session, ctx.session.send_resource_list_changed)
    return caller


def way_back(ctx: Context) -> Notify:
    """With the answer's own stream, where the transport has one for each request."""

    async def notify() -> None:
        await ctx.session.send_notification(types.ToolListChangedNotification(), related_request_id=ctx.request_id)

    return notify
