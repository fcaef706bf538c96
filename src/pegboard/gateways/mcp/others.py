"""What servers have besides tools, on the wire: resources, prompts, completion and logging."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import ListenHandler

from pegboard.gateways.mcp.asked_client import AskedClient
from pegboard.gateways.mcp.caller import Caller
from pegboard.gateways.mcp.envelope import HINTS, Context, foreign_meta, kept
from pegboard.gateways.mcp.gateway import Gateway
from pegboard.gateways.mcp.library import Sight, everything
from pegboard.gateways.mcp.pages import page
from pegboard.gateways.mcp.rounds import Params, Rounds, Work
from pegboard.gateways.mcp.shelves import KINDS, Kind

Result = dict[str, Any]
Connected = Callable[[Context], Caller]


class Others:
    """Handlers for the SDK's server. ``connected`` says who asks."""

    def __init__(self, gateway: Gateway, rounds: Rounds, connected: Connected) -> None:
        self._gateway = gateway
        self._library = gateway.library
        self._rounds = rounds
        self._connected = connected
        self._listen = ListenHandler(gateway.announcer.bus)

    def join(self, server: Server[Any]) -> None:
        """Past the SDK's warning that revision 2026-07-28 has no such request: clients of the handshake era do."""
        server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, self.set_level)

    def handlers(self) -> dict[str, Any]:
        """As the SDK's server is given them."""
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
        """How long it holds is the server's word; that it is for this client alone, ours (M25)."""
        see = self._sight(ctx)
        result = await self._answered(ctx, params, lambda: self._library.read(_forwarded(ctx, params), see))
        if result.get("resultType") == "input_required":
            return kept(ctx, result)
        return kept(ctx, {"ttlMs": 0} | result | {"cacheScope": "private"})

    async def get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> Result:
        see = self._sight(ctx)
        return kept(ctx, await self._answered(ctx, params, lambda: self._library.prompt(_forwarded(ctx, params), see)))

    async def complete(self, ctx: Context, params: types.CompleteRequestParams) -> Result:
        await self._started(ctx)
        return kept(ctx, await self._library.complete(params, self._sight(ctx)))

    async def subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> Result:
        """The news go to the session's latest connection."""
        caller, session = await self._started(ctx), ctx.session

        async def tell(uri: str) -> None:
            await session.send_resource_updated(uri)

        await self._library.subscribe(caller.session, str(params.uri), tell, self._sight(ctx))
        return {}

    async def unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> Result:
        caller = await self._started(ctx)
        await self._library.unsubscribe(caller.session, str(params.uri))
        return {}

    async def listen(self, ctx: Context, params: types.SubscriptionsListenRequestParams) -> Any:
        """One stream of a client of revision 2026-07-28; what it wants to watch is watched while it is open."""
        await self._started(ctx)
        stream = object()
        try:
            for uri in params.notifications.resource_subscriptions or ():
                await self._library.subscribe(stream, str(uri), None, self._sight(ctx))
            return await self._listen(ctx, params)
        finally:
            await self._library.forget(stream)

    async def set_level(self, ctx: Context, params: types.SetLevelRequestParams) -> Result:
        caller = self._connected(ctx)
        await self._gateway.levels.set(caller.session, params.level)
        return {}

    def _lister(self, kind: Kind) -> Any:
        async def list_them(ctx: Context, params: types.PaginatedRequestParams | None) -> Result:
            await self._started(ctx)
            found = await self._library.listed(kind, self._sight(ctx))
            cursor = params.cursor if params else None
            return kept(ctx, page(found, cursor, part=kind, identity=KINDS[kind].identity) | HINTS)

        return list_them

    async def _answered(self, ctx: Context, params: Params, work: Work) -> Result:
        caller = await self._started(ctx)
        origin = AskedClient(ctx, caller, level=self._gateway.levels.of(caller.session))
        return await self._rounds.answered(ctx, params, origin, work)

    def _sight(self, ctx: Context) -> Sight:
        """What a token opens of servers besides their tools: those of which it opens every tool."""
        holder = self._connected(ctx).holder
        return everything if holder is None else holder.opens

    async def _started(self, ctx: Context) -> Caller:
        """Who asks, once it is known what the servers have."""
        caller = self._connected(ctx)
        await self._gateway.view.started()
        return caller


def _forwarded(ctx: Context, params: Any) -> Any:
    """The request with the caller's own `_meta` keys alone."""
    return params.model_copy(update={"meta": foreign_meta(ctx) or None})
