"""Handlers for the requests of the skills extension (SEP-2640)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.server.lowlevel import Server

from pegboard.gateways.mcp.gateway.caller import Caller
from pegboard.gateways.mcp.resources.resources import Visible, everything
from pegboard.gateways.mcp.transport.client_input import ClientOrigin
from pegboard.gateways.mcp.transport.results import HINTS, Context, foreign_meta, kept, page
from pegboard.model import JsonObject
from pegboard.upstreams.extension_requests import SKILLS, AnyParams

Result = dict[str, Any]
Ask = Callable[[JsonObject, Visible], Awaitable[Result]]


class SkillHandlers:
    """Handlers for the SDK's server, which has none for skills. ``connected`` returns the caller of a request."""

    def __init__(self, connected: Callable[[Context], Caller]) -> None:
        self._connected = connected

    def join(self, server: Server[Any]) -> None:
        server.add_request_handler("skills/list", types.PaginatedRequestParams, self._list)
        server.add_request_handler("skills/get", AnyParams, self._entry)
        server.add_request_handler("resources/directory/read", AnyParams, self._directory)

    async def _list(self, ctx: Context, params: types.PaginatedRequestParams) -> Result:
        found = await ctx.lifespan_context.resources.listed("skills", await self._visible(ctx))
        return kept(ctx, page(found, params.cursor, part="skills", identity="uri") | HINTS)

    async def _entry(self, ctx: Context, _params: AnyParams) -> Result:
        return await self._about(ctx.lifespan_context.skills.entry, ctx)

    async def _directory(self, ctx: Context, _params: AnyParams) -> Result:
        return await self._about(ctx.lifespan_context.skills.directory, ctx)

    async def _about(self, ask: Ask, ctx: Context) -> Result:
        visible, caller = await self._visible(ctx), self._connected(ctx)
        level = ctx.lifespan_context.levels.of(caller.session)
        params = {key: value for key, value in (ctx.params or {}).items() if key != "_meta"}
        if meta := foreign_meta(ctx):
            params["_meta"] = meta
        with ClientOrigin(ctx, caller, level=level).answering():
            return kept(ctx, {"ttlMs": 0} | await ask(params, visible) | {"cacheScope": "private"})

    async def _visible(self, ctx: Context) -> Visible:
        """The servers whose skills the caller may use. Raises MCPError where none of them has any."""
        gateway, caller = ctx.lifespan_context, self._connected(ctx)
        await gateway.view.started()
        if SKILLS not in gateway.extensions(caller):
            raise MCPError(types.METHOD_NOT_FOUND, "Method not found", ctx.method)
        return everything if caller.holder is None else caller.holder.opens
