"""Handlers for requests about tasks: `tasks/get`, `tasks/cancel`, and what else the client's era has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types.jsonrpc import HEADER_MISMATCH, MISSING_REQUIRED_CLIENT_CAPABILITY

from pegboard.gateways.mcp.gateway.caller import Caller
from pegboard.gateways.mcp.transport.client_input import ClientOrigin
from pegboard.gateways.mcp.transport.results import Context, foreign_meta, kept, page
from pegboard.upstreams.extension_requests import TASKS, AnyNotification, AnyParams

MODERN = ("tasks/get", "tasks/update", "tasks/cancel")
HANDSHAKE = ("tasks/get", "tasks/result", "tasks/cancel")
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"

Result = dict[str, Any]
Connected = Callable[[Context], Caller]


class TaskHandlers:
    """Handlers for the SDK's server, which has none for tasks. ``connected`` returns the caller of a request."""

    def __init__(self, connected: Connected) -> None:
        self._connected = connected

    def join(self, server: Server[Any]) -> None:
        for method in dict.fromkeys((*MODERN, *HANDSHAKE)):
            server.add_request_handler(method, AnyParams, partial(self._about_one, method))
        server.add_request_handler("tasks/list", types.PaginatedRequestParams, self._list)

    async def _about_one(self, method: str, ctx: Context, _params: AnyParams) -> Result:
        gateway, caller = ctx.lifespan_context, self._caller(ctx, method)
        params = {key: value for key, value in (ctx.params or {}).items() if key != "_meta"}
        if caller.modern:
            check_declared(ctx)
            _check_header(ctx, params.get("taskId"))
        if meta := foreign_meta(ctx):
            params["_meta"] = meta
        gateway.tasks.connect(None if caller.modern else caller.session, _outside(ctx))
        with ClientOrigin(ctx, caller, level=gateway.levels.of(caller.session)).answering():
            return kept(ctx, await gateway.tasks.asked(method, params, caller))

    async def _list(self, ctx: Context, params: types.PaginatedRequestParams) -> Result:
        caller = self._caller(ctx, "tasks/list")
        with ClientOrigin(ctx, caller).answering():
            found = await ctx.lifespan_context.tasks.listed(caller)
        return kept(ctx, page(found, params.cursor, part="tasks", identity="taskId"))

    def _caller(self, ctx: Context, method: str) -> Caller:
        """Raises MCPError for a method that the client's era does not have, and where no server runs tasks."""
        caller = self._connected(ctx)
        known = MODERN if caller.modern else (*HANDSHAKE, "tasks/list")
        if method not in known or not ctx.lifespan_context.tasks.offered(caller):
            raise MCPError(types.METHOD_NOT_FOUND, "Method not found", method)
        return caller

    @asynccontextmanager
    async def listening(self, ctx: Context, params: types.SubscriptionsListenRequestParams) -> AsyncIterator[Context]:
        """Within it, the stream of this request hears of the tasks it names. Serve it with the context that is given.

        Raises MCPError for a client that did not declare the extension.
        """
        wanted = (params.notifications.model_extra or {}).get("taskIds")
        if not isinstance(wanted, list) or not wanted:
            yield ctx
            return
        check_declared(ctx)
        caller, stream, acknowledged = self._connected(ctx), object(), asyncio.Event()

        async def tell(message: AnyNotification) -> None:
            await acknowledged.wait()
            stamped = message.params | {"_meta": (message.params.get("_meta") or {}) | {SUBSCRIPTION: ctx.request_id}}
            told: Any = AnyNotification(method=message.method, params=stamped)
            await ctx.session.send_notification(told, related_request_id=ctx.request_id)

        tasks = ctx.lifespan_context.tasks
        try:
            with ClientOrigin(ctx, caller).answering():
                honored = [each for each in wanted if await tasks.watch(stream, str(each), caller, tell)]
            yield replace(ctx, session=_Acknowledging(ctx.session, honored, acknowledged))  # type: ignore[arg-type]
        finally:
            tasks.unwatch(stream)


class _Acknowledging:
    """A session that says which tasks a stream hears of, when it acknowledges the stream."""

    def __init__(self, session: Any, tasks: Sequence[str], acknowledged: asyncio.Event) -> None:
        self._session = session
        self._tasks = tasks
        self._acknowledged = acknowledged

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    async def send_notification(self, message: Any, related_request_id: types.RequestId | None = None) -> None:
        if isinstance(message, types.SubscriptionsAcknowledgedNotification):
            honored = message.params.notifications.model_copy(update={"taskIds": list(self._tasks)})
            params = message.params.model_copy(update={"notifications": honored})
            message = message.model_copy(update={"params": params})
        await self._session.send_notification(message, related_request_id=related_request_id)
        self._acknowledged.set()


def check_declared(ctx: Context) -> None:
    """Raises MCPError for a client that does not declare the tasks extension with its request (SEP-2663)."""
    capabilities = ctx.session.client_capabilities
    if capabilities is None or TASKS not in (capabilities.extensions or {}):
        needed: Result = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "Missing required client capability", needed)


def _check_header(ctx: Context, task: object) -> None:
    """Raises MCPError where the header that routes the request names another task (SEP-2663, routing headers)."""
    if ctx.request is not None and decode_header_value(ctx.request.headers.get(MCP_NAME_HEADER)) != task:
        raise MCPError(
            HEADER_MISMATCH, f"{MCP_NAME_HEADER} header does not match the request body's 'taskId' parameter"
        )


def _outside(ctx: Context) -> Any:
    """Sends outside any request, on the session's latest connection."""
    return ctx.session.send_notification
