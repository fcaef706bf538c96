"""Handlers for everything but tools: resources, prompts, completion and logging."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.server.lowlevel import Server

from pegboard.errors import PegboardError
from pegboard.gateways.mcp.gateway import session_changes
from pegboard.gateways.mcp.gateway.app_tools import SCHEME
from pegboard.gateways.mcp.gateway.caller import Caller
from pegboard.gateways.mcp.resources.resource_listing import KINDS, Kind
from pegboard.gateways.mcp.resources.resources import Visible, everything
from pegboard.gateways.mcp.transport.client_input import ClientOrigin, Params, Work
from pegboard.gateways.mcp.transport.results import HINTS, Context, PageCheck, foreign_meta, kept, page
from pegboard.gateways.mcp.transport.task_handlers import TaskHandlers

LOGGER = logging.getLogger(__name__)
Result = dict[str, Any]
Connected = Callable[[Context], Caller]


class ResourceHandlers:
    """Handlers for the SDK's server. ``connected`` returns the caller of a request."""

    def __init__(self, connected: Connected, tasks: TaskHandlers) -> None:
        self._connected = connected
        self._tasks = tasks

    def join(self, server: Server[Any]) -> None:
        """Registers `logging/setLevel` without the SDK's warning that revision 2026-07-28 lacks it: handshake clients
        use it."""
        server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, self.set_level)

    def handlers(self) -> dict[str, Any]:
        """The handlers as arguments of the SDK's server."""
        return {
            "on_list_resources": self._lister("resources"),
            "on_list_resource_templates": self._lister("resourceTemplates"),
            "on_list_prompts": self._lister("prompts"),
            "on_read_resource": self.read,
            "on_get_prompt": self.get_prompt,
            "on_completion": self.complete,
            "on_subscribe_resource": self.subscribe,
            "on_unsubscribe_resource": self.unsubscribe,
            "on_subscriptions_listen": self.listen,
        }

    async def read(self, ctx: Context, params: types.ReadResourceRequestParams) -> Result:
        """The server decides how long the result may be cached; the gateway makes the cache private (M25)."""
        gateway, visible = ctx.lifespan_context, self._visible(ctx, str(params.uri))
        read = partial(gateway.resources.read, _forwarded(ctx, params), visible)
        result = await self._answered(ctx, params, read)
        if result.get("resultType") == "input_required":
            return kept(ctx, result)
        gateway.likely.read(str(params.uri), self._connected(ctx))
        return kept(ctx, {"ttlMs": 0} | result | {"cacheScope": "private"})

    async def get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> Result:
        resources, visible = ctx.lifespan_context.resources, self._visible(ctx)
        prompt = partial(resources.prompt, _forwarded(ctx, params), visible)
        return kept(ctx, await self._answered(ctx, params, prompt))

    async def complete(self, ctx: Context, params: types.CompleteRequestParams) -> Result:
        await self._started(ctx)
        return kept(ctx, await ctx.lifespan_context.resources.complete(params, self._visible(ctx)))

    async def subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> Result:
        """Notifications go to the session's latest connection."""
        caller, session = await self._started(ctx), ctx.session

        async def tell(uri: str) -> None:
            await session.send_resource_updated(uri)

        gateway, uri = ctx.lifespan_context, str(params.uri)
        await gateway.resources.subscribe(caller.session, uri, tell, self._visible(ctx))
        await gateway.book.update(caller.session, session_changes.watches(uri))
        return {}

    async def unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> Result:
        caller = await self._started(ctx)
        gateway, uri = ctx.lifespan_context, str(params.uri)
        await gateway.book.update(caller.session, session_changes.watches_no_more(uri))
        await gateway.resources.unsubscribe(caller.session, uri)
        return {}

    async def listen(self, ctx: Context, params: types.SubscriptionsListenRequestParams) -> Any:
        """One stream of a client of revision 2026-07-28; its resources are watched while it is open."""
        await self._started(ctx)
        gateway, stream = ctx.lifespan_context, object()
        try:
            params = await self._watched(ctx, stream, params)
            async with self._tasks.listening(ctx, params) as hearing:
                return await gateway.announcer.listen(hearing, params)
        finally:
            await gateway.resources.forget(stream)

    async def _watched(
        self, ctx: Context, stream: object, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenRequestParams:
        """Watch what a stream asks for. The request without what cannot be watched: the acknowledgement lacks it."""
        wanted, honored = params.notifications, []
        for uri in wanted.resource_subscriptions or ():
            try:
                await ctx.lifespan_context.resources.subscribe(stream, str(uri), None, self._visible(ctx))
                honored.append(uri)
            except (MCPError, PegboardError) as error:
                LOGGER.info("A resource that a client wants to watch is not watched: %s", error)
        kept_of = wanted.model_copy(update={"resource_subscriptions": honored or None})
        return params.model_copy(update={"notifications": kept_of})

    async def set_level(self, ctx: Context, params: types.SetLevelRequestParams) -> Result:
        caller = self._connected(ctx)
        gateway = ctx.lifespan_context
        await gateway.book.update(caller.session, session_changes.logs_at(params.level))
        await gateway.levels.set(caller.session, params.level)
        return {}

    def _lister(self, kind: Kind) -> Any:
        identity = KINDS[kind].identity
        check = PageCheck(KINDS[kind].request(None).method, kind, identity)

        async def list_them(ctx: Context, params: types.PaginatedRequestParams | None) -> Result:
            await self._started(ctx)
            found = await ctx.lifespan_context.resources.listed(kind, self._visible(ctx))
            cursor = params.cursor if params else None
            return kept(ctx, check.passed(ctx, page(found, cursor, part=kind, identity=identity) | HINTS))

        return list_them

    async def _answered(self, ctx: Context, params: Params, work: Work) -> Result:
        gateway, caller = ctx.lifespan_context, await self._started(ctx)
        origin = ClientOrigin(ctx, caller, level=gateway.levels.of(caller.session))
        return await gateway.pending_inputs.result(ctx, params, origin, work)

    def _visible(self, ctx: Context, uri: str = "") -> Visible:
        """The servers whose resources and prompts the caller may use: those of which it may use every tool, and for the
        interface of a tool that it may use, the tool's."""
        gateway, caller = ctx.lifespan_context, self._connected(ctx)
        holder = caller.holder
        if holder is None:
            return everything
        if not uri.startswith(SCHEME):
            return holder.opens
        return lambda server: holder.opens(server) or gateway.shows(uri, server, caller)

    async def _started(self, ctx: Context) -> Caller:
        """The caller, after the servers have had time to start."""
        caller = self._connected(ctx)
        await ctx.lifespan_context.view.started()
        return caller


def _forwarded(ctx: Context, params: Any) -> Any:
    """The request with the caller's own `_meta` keys only."""
    return params.model_copy(update={"meta": foreign_meta(ctx) or None})
