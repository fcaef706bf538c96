"""Lazy tools for an MCP server written in Python, in the same process: one line before `server.run()`.

A middleware answers `tools/list` and the meta-tools; everything else goes to the server as before. Callers see only
what the server itself would list for them in the same request, so rights, per-session visibility and other middleware
apply: a search finds nothing that the server hides, and a tool called through `invoke_tool` passes the middleware under
its own name.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeVar

import mcp_types as types
from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import Server
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pegboard.compose import Parts, local_fit, profile, rules
from pegboard.errors import ConfigError
from pegboard.gateways.mcp.embedded import progressive_discovery
from pegboard.gateways.mcp.embedded.hooked_server import CALL, LIST, Context, HookedRequest, ToolListing, as_dictionary
from pegboard.gateways.mcp.embedded.listing_gateways import ListingGateways
from pegboard.gateways.mcp.gateway import meta_definitions
from pegboard.gateways.mcp.gateway.caller import CallContext, Caller
from pegboard.gateways.mcp.gateway.caller_view import choose
from pegboard.gateways.mcp.gateway.clients import client_kind, client_rows
from pegboard.gateways.mcp.gateway.gateway import Gateway
from pegboard.gateways.mcp.transport.call_handler import list_changed_notifier
from pegboard.gateways.mcp.transport.client_connection import at_end, caller_of
from pegboard.gateways.mcp.transport.results import HINTS, page
from pegboard.model import Session
from pegboard.settings import Settings, load_settings

MOST_SESSIONS = 10_000
LOW_LEVEL = ("_lowlevel_server", "_mcp_server")
"""The attributes in which `MCPServer` and FastMCP keep their low-level server."""
NOT_HERE = ("servers", "toolsets")

AnyServer = TypeVar("AnyServer")


def lazy(server: AnyServer, *, parts: Parts | None = None, **options: Any) -> AnyServer:
    """Give a server lazy tools. Call it once, before the server runs. Returns the server.

    ``server`` is the SDK's `MCPServer` or low-level `Server`, or a `FastMCP` of version 4. ``options`` are fields of
    `Settings`, which also come from the environment. Tools may be added, changed and removed at any time. Raises
    ConfigError for invalid options, for another kind of server, and for a server that is already lazy.

    >>> from mcp.server.mcpserver import MCPServer
    >>> import pegboard
    >>> server = pegboard.lazy(MCPServer("shop"), exposure="static", always_available=("list_orders",))
    >>> server.name
    'shop'
    """
    settings = _settings(options)
    found = low_level(server)
    if any(isinstance(each, LazyTools) for each in found.middleware):
        raise ConfigError(f"The server {found.name!r} is already lazy.", remedy="Call pegboard.lazy once per server.")
    found.middleware.insert(0, LazyTools(found, settings, parts))
    return server


def low_level(server: object) -> Server[Any]:
    """The low-level server of a server. Raises ConfigError if there is none that takes middleware."""
    for candidate in (server, *(getattr(server, name, None) for name in LOW_LEVEL)):
        if isinstance(candidate, Server) and isinstance(getattr(candidate, "middleware", None), list):
            return candidate
    kind = f"{type(server).__module__}.{type(server).__qualname__}"
    raise ConfigError(
        f"Found no low-level MCP server in a {kind}.",
        remedy="Give pegboard.lazy an MCPServer or Server of mcp 2, or a FastMCP of fastmcp 4; "
        "with a newer version of these, a newer version of Pegboard may be needed.",
    )


class LazyTools:
    """The outermost middleware, so that its own requests to the server pass all the others."""

    def __init__(self, server: Server[Any], settings: Settings, parts: Parts | None) -> None:
        self._server = server
        self._settings = settings
        self._boards = ListingGateways(server, settings, parts)
        self._listed: OrderedDict[str, str] = OrderedDict()
        self._kind = lru_cache(maxsize=256)(lambda name, title: client_kind(name, title, settings.clients))

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        request = HookedRequest(ctx=ctx, proceed=call_next)
        if ctx.method == LIST:
            return await self._list(request)
        if ctx.method == CALL:
            return await self._call(request)
        if ctx.method in progressive_discovery.METHODS:
            return await self._grouped(request)
        result = await call_next(ctx)
        if ctx.method == "initialize":
            return self._with_extension(self._announcing(ctx, result))
        return self._with_extension(result) if ctx.method == "server/discover" else result

    async def _grouped(self, request: HookedRequest) -> HandlerResult:
        """`groups/list` and `groups/get`, for clients that declare the extension; else the server's own, if any."""
        ctx = request.ctx
        declared = progressive_discovery.is_declared(ctx)
        gateway = self._boards.of(await request.listing(), searched=True) if declared else None
        if gateway is None:
            try:
                return await request.proceed(ctx)
            except MCPError as error:
                if error.error.code != types.METHOD_NOT_FOUND or ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
                    raise
                needed: dict[str, Any] = {"requiredCapabilities": {"extensions": {progressive_discovery.EXTENSION: {}}}}
                message = f"{ctx.method} needs the extension {progressive_discovery.EXTENSION}"
                raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, message, needed) from error
        caller = self._caller(ctx)
        if ctx.method == progressive_discovery.LIST_GROUPS:
            found = await progressive_discovery.groups(gateway, caller)
        else:
            found = await progressive_discovery.group(gateway, caller, request.params)
        return self._finished(ctx, found | (HINTS if caller.modern else {}))

    async def _list(self, request: HookedRequest) -> HandlerResult:
        cursor = request.params.get("cursor")
        caller = self._caller(request.ctx)
        listing = await request.listing()
        gateway = self._boards.of(listing)
        if gateway is None or not isinstance(cursor, str | None):
            return await request.proceed(request.ctx)
        self._connect(caller, gateway, request.ctx)
        self._changed(caller, listing)
        if "filter" in request.params and progressive_discovery.is_declared(request.ctx):
            shown = await progressive_discovery.filtered(gateway, caller, request.params["filter"])
        else:
            shown = await gateway.list_tools(caller)
        found = page(shown, cursor)
        scope = {"cacheScope": "private"} if "cacheScope" in listing.envelope else {}
        return listing.envelope | found | scope

    async def _call(self, request: HookedRequest) -> HandlerResult:
        name, arguments = request.params.get("name"), request.params.get("arguments")
        if not isinstance(name, str) or not isinstance(arguments, Mapping | None):
            return await request.proceed(request.ctx)
        caller = self._caller(request.ctx)
        context = CallContext(caller=caller, notify=list_changed_notifier(request.ctx))
        gateway = self._boards.latest
        if gateway is None or not await gateway.accepts(name, arguments or {}, caller):
            listing = await request.listing()
            gateway = self._boards.of(listing, searched=name in meta_definitions.META_TOOLS)
            if gateway is None or not gateway.knows(name, caller):
                return await request.proceed(request.ctx)
            self._connect(caller, gateway, request.ctx)
            if self._changed(caller, listing) and caller.session is not None:
                await gateway.announcer.tell(caller.session, context.notify)
        with request.answering():
            return self._finished(request.ctx, await gateway.call(name, arguments or {}, context))

    def _connect(self, caller: Caller, gateway: Gateway, ctx: Context) -> None:
        """Notify the session of changes as long as its connection lasts."""
        session = caller.session
        if session is not None and not caller.modern:
            gateway.announcer.connect(session, ctx.session.send_tool_list_changed)
            at_end(ctx, lambda: self._forget(session))

    def _forget(self, session: str) -> None:
        self._listed.pop(session, None)
        self._boards.disconnect(session)

    def _changed(self, caller: Caller, listing: ToolListing) -> bool:
        """Whether the server lists other tools to this session than at its last request."""
        if caller.session is None or caller.modern:
            return False
        before = self._listed.get(caller.session)
        self._listed[caller.session] = listing.fingerprint
        self._listed.move_to_end(caller.session)
        while len(self._listed) > MOST_SESSIONS:
            self._listed.popitem(last=False)
        return before not in (None, listing.fingerprint)

    def _announcing(self, ctx: Context, result: HandlerResult) -> HandlerResult:
        """Declare `listChanged` if searches change this client's list, whatever the server declares."""
        shown = as_dictionary(result)
        capabilities = shown.get("capabilities")
        if not isinstance(capabilities, Mapping) or not isinstance(capabilities.get("tools"), Mapping):
            return result
        client = (ctx.params or {}).get("clientInfo") or {}
        caller = replace(self._caller(ctx), kind=self._kind(client.get("name", ""), client.get("title")))
        chosen = choose(caller, Session(), self._settings, small=False, tools=sys.maxsize)
        if chosen != "dynamic":
            return result
        tools = {**capabilities["tools"], "listChanged": True}
        return shown | {"capabilities": {**capabilities, "tools": tools}}

    @staticmethod
    def _with_extension(result: HandlerResult) -> HandlerResult:
        """Declare progressive discovery."""
        shown = as_dictionary(result)
        capabilities = shown.get("capabilities")
        if not isinstance(capabilities, Mapping) or not isinstance(capabilities.get("tools"), Mapping):
            return result
        known = {
            **(capabilities.get("extensions") or {}),
            progressive_discovery.EXTENSION: progressive_discovery.SETTINGS,
        }
        return shown | {"capabilities": {**capabilities, "extensions": known}}

    def _caller(self, ctx: Context) -> Caller:
        try:
            return caller_of(ctx, self._kind)
        except ConfigError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error

    def _finished(self, ctx: Context, result: dict[str, Any]) -> dict[str, Any]:
        """The result in the shape of revision 2026-07-28, which a middleware has to provide; the server's own results
        have it."""
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return result
        stamp = {types.SERVER_INFO_META_KEY: self._server.server_info_stamp}
        return {"resultType": "complete"} | result | {"_meta": stamp | (result.get("_meta") or {})}


def _settings(options: Mapping[str, Any]) -> Settings:
    """The settings, checked as far as possible without tools. Raises ConfigError."""
    if wrong := [name for name in options if name not in Settings.model_fields or name in NOT_HERE]:
        raise ConfigError(
            f"pegboard.lazy has no option {wrong[0]!r}.",
            remedy=f"Its options are the fields of Settings, but for {' and '.join(NOT_HERE)}.",
        )
    settings = load_settings(**options)
    client_rows(settings.clients)
    profile(settings, local_fit(settings))
    for each in settings.rules:
        rules(each)
    return settings
