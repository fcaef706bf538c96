"""The gateway as an MCP server: the SDK's low-level server, whose results are sent as the dictionaries they are."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity

from pegboard.errors import PegboardError
from pegboard.gateways.mcp.embedded.hooked_server import as_dictionary
from pegboard.gateways.mcp.gateway import session_changes
from pegboard.gateways.mcp.gateway.caller import Caller
from pegboard.gateways.mcp.gateway.gateway import Gateway
from pegboard.gateways.mcp.transport.call_handler import CallHandler
from pegboard.gateways.mcp.transport.client_connection import at_end, caller_of
from pegboard.gateways.mcp.transport.list_handler import ListHandler
from pegboard.gateways.mcp.transport.modern_requests import MirroredArguments
from pegboard.gateways.mcp.transport.offered_capabilities import with_extensions
from pegboard.gateways.mcp.transport.request_spans import trace_requests
from pegboard.gateways.mcp.transport.resource_handlers import ResourceHandlers
from pegboard.gateways.mcp.transport.results import HANDLER_RESULTS, Context
from pegboard.gateways.mcp.transport.skill_handlers import SkillHandlers
from pegboard.gateways.mcp.transport.task_handlers import TaskHandlers
from pegboard.model import JsonObject
from pegboard.settings import Exposure
from pegboard.telemetry.trace_spans import Tracer

BEGINNINGS = ("initialize", "server/discover")


class GatewayServer(Server[Gateway]):
    """Declares `listChanged` for its lists on every transport. ``gateway`` is the one that its connections are for."""

    gateway: Gateway

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *more: Any, **options: Any
    ) -> InitializationOptions:
        """The SDK's HTTP transport passes no options, which would declare the opposite."""
        given = notification_options or NotificationOptions(
            tools_changed=True, prompts_changed=True, resources_changed=True
        )
        return super().create_initialization_options(given, *more, **options)

    def of(self, gateway: Gateway) -> GatewayServer:
        """The same handlers, for connections to this gateway."""
        own = copy(self)
        own.gateway = gateway
        own.get_tool_input_schema = MirroredArguments(gateway.input_schema)
        return own


LONGEST_CLIENT, LONGEST_NAME = 16 * 1024, 256
"""Characters of a client's introduction that are kept, and of its name if the whole is longer."""


def _kept(client: JsonObject) -> JsonObject:
    """What a session keeps of its client's introduction: all of it, unless that is long."""
    if len(json.dumps(client)) <= LONGEST_CLIENT:
        return client
    name, can = client["clientInfo"], client["capabilities"]
    return {
        "protocolVersion": client["protocolVersion"],
        "clientInfo": {"name": name["name"][:LONGEST_NAME], "version": name["version"][:LONGEST_NAME]},
        "capabilities": {each: {} for each in ("roots", "sampling", "elicitation") if each in can},
    }


def wire(gateway: Gateway, *, exposure: Exposure | None = None, tracer: Tracer | None = None) -> GatewayServer:
    """The server of one gateway, as `gateway_server` makes it."""
    return gateway_server(exposure=exposure, tracer=tracer).of(gateway)


def gateway_server(
    sealed: RequestStateSecurity | None = None, *, exposure: Exposure | None = None, tracer: Tracer | None = None
) -> GatewayServer:
    """A server for both protocol eras, and for any number of gateways: connect to it as the server `of` one.

    A handler knows no gateway but the one that its request brings. ``sealed`` protects the request states that clients
    hold; by default only this process can open them. ``exposure`` is what a client on standard input and output asks
    for. With a ``tracer``, each request has a span.
    """

    def connected(ctx: Context) -> Caller:
        return _connected(ctx, exposure)

    async def initialized(ctx: Context, _params: types.NotificationParams | None) -> None:
        caller, client = connected(ctx), ctx.session.client_params
        if caller.session is not None and client is not None:
            said = client.model_dump(by_alias=True, mode="json", exclude_none=True)
            said["protocolVersion"] = ctx.protocol_version
            await ctx.lifespan_context.book.update(caller.session, session_changes.introduced(_kept(said)))
            _present(ctx, caller.session)

    async def roots_changed(ctx: Context, _params: types.NotificationParams | None) -> None:
        ctx.lifespan_context.fleet.roots_changed(connected(ctx).session)

    calls, lists = CallHandler(connected), ListHandler(connected)
    tasks = TaskHandlers(connected)
    handlers = ResourceHandlers(connected, tasks)
    server = GatewayServer(
        "pegboard",
        version=version("pegboard"),
        lifespan=_gateway_of,  # type: ignore[arg-type]
        on_list_tools=lists.handle,  # type: ignore[arg-type]  # the SDK takes dictionaries too
        on_call_tool=calls.handle,  # type: ignore[arg-type]
        **handlers.handlers(),
    )
    server.add_notification_handler("notifications/initialized", types.NotificationParams, initialized)
    server.add_notification_handler("notifications/roots/list_changed", types.NotificationParams, roots_changed)
    handlers.join(server)
    tasks.join(server)
    SkillHandlers(connected).join(server)
    boundary = RequestStateBoundary(sealed or RequestStateSecurity.ephemeral(), default_audience="pegboard")
    server.middleware += [boundary, calls, lists, explained, verbatim, _introduces(exposure)]
    if tracer is not None:
        trace_requests(server, tracer)
    return server


@asynccontextmanager
async def _gateway_of(server: GatewayServer) -> AsyncIterator[Gateway]:
    yield server.gateway


async def explained(ctx: Context, call_next: CallNext) -> HandlerResult:
    """A middleware that answers with our own errors as they are: the SDK would say no more than that there was one.

    Raises MCPError in their place.
    """
    try:
        return await call_next(ctx)
    except PegboardError as error:
        raise MCPError(types.INTERNAL_ERROR, str(error), error.payload()) from error


async def verbatim(ctx: Context, call_next: CallNext) -> HandlerResult:
    """A middleware that sends what the handler returned: the SDK would drop the fields its models do not know (M7).

    The SDK still validates the result: one that breaks the protocol is an error.
    """
    results: list[dict[str, Any]] = []
    token = HANDLER_RESULTS.set(results)
    try:
        shaped = await call_next(ctx)
    finally:
        HANDLER_RESULTS.reset(token)
    return results[0] if results else shaped


def _introduces(exposure: Exposure | None) -> ServerMiddleware[Gateway]:
    """A middleware that adds the gateway's instructions to the answer to a client's first request."""

    async def introduce(ctx: Context, call_next: CallNext) -> HandlerResult:
        result = await call_next(ctx)
        if ctx.method not in BEGINNINGS:
            return result
        gateway = ctx.lifespan_context
        caller = caller_of(ctx, gateway.kind, exposure)
        if client := (ctx.params or {}).get("clientInfo"):
            caller = replace(caller, kind=gateway.kind(client.get("name", ""), client.get("title")))
        said = await gateway.introduction(caller)
        answer = with_extensions(
            as_dictionary(result), gateway, replace(caller, modern=ctx.method == "server/discover")
        )
        return answer | ({"instructions": said} if said else {})

    return introduce


def _present(ctx: Context, session: str) -> None:
    """Lets servers ask the client for its roots outside its requests, until its connection ends. Nothing that it
    watches is watched after that."""
    wire, gateway, fleet = ctx.session, ctx.lifespan_context, ctx.lifespan_context.fleet

    def ended() -> None:
        fleet.leave(session)
        gateway.resources.leave(session)

    async def ask() -> types.ListRootsResult:
        return await wire.send_request(types.ListRootsRequest(), types.ListRootsResult)

    capabilities = wire.client_capabilities
    fleet.join(session, ask if capabilities and capabilities.roots is not None else None)
    at_end(ctx, ended)


def _connected(ctx: Context, exposure: Exposure | None) -> Caller:
    """The caller. Notifications for its session go to its latest connection, which is this one."""
    gateway = ctx.lifespan_context
    caller = caller_of(ctx, gateway.kind, exposure)
    if caller.session is not None and not caller.modern:
        gateway.announcer.connect(caller.session, ctx.session.send_tool_list_changed)
        gateway.resources.prompts_announcer.connect(caller.session, ctx.session.send_prompt_list_changed)
        gateway.resources.resources_announcer.connect(caller.session, ctx.session.send_resource_list_changed)
    return caller
