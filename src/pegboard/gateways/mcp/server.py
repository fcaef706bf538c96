"""The gateway on the wire: the SDK's low-level server, results kept as the dictionaries they are."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from importlib.metadata import version
from typing import Any

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.dispatcher import ProgressFnT
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pegboard.catalog import Catalog
from pegboard.compose import Parts, build, default_parts
from pegboard.gateways.mcp.gateway import Gateway
from pegboard.settings import Settings
from pegboard.upstreams import Fleet

INSTRUCTIONS = (
    "This server stands before many others. What they can do is found with search_tools and called with invoke_tool."
)
LIST_TTL_MS = 5000
MODERN_KEYS = frozenset({"resultType", "ttlMs", "cacheScope"})
"""What results of revision 2026-07-28 carry beyond those of the handshake era."""
OURS = ("progressToken",)
RESERVED_PREFIX = "io.modelcontextprotocol/"

_verbatim: ContextVar[list[dict[str, Any]] | None] = ContextVar("verbatim", default=None)
"""Where a handler leaves its result for the middleware, one list a request."""


async def serve_stdio(settings: Settings) -> None:
    """Serve one client on standard input and output until it hangs up; then end every server.

    An interrupt ends the process at once, as SIGTERM does: a thread that waits for input cannot be called back, and
    every server's reaper ends what it watches when the gateway is gone.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    async with open_gateway(settings) as gateway, stdio_server() as (read, write):
        server = wire(gateway)
        await server.run(read, write, server.create_initialization_options())


@asynccontextmanager
async def open_gateway(settings: Settings, parts: Parts | None = None) -> AsyncIterator[Gateway]:
    """A gateway with its servers started, and stopped at the end."""
    parts = default_parts(settings) if parts is None else parts
    board = build(settings, Catalog.build([]), parts=parts, patient=False)
    gateway: Gateway | None = None

    async def on_change() -> None:
        if gateway is not None:
            await gateway.catalog_changed()

    fleet = Fleet(
        settings.enabled_servers,
        connect_timeout=settings.connect_timeout,
        call_timeout=settings.call_timeout,
        events=parts.events,
        clock=parts.clock,
        on_change=on_change,
        definitions=parts.definitions,
        lazy=settings.lazy,
        idle_stop=settings.idle_stop,
    )
    gateway = Gateway(settings, board, fleet, events=parts.events, clock=parts.clock)
    async with fleet:
        try:
            yield gateway
        finally:
            gateway.close()


def wire(gateway: Gateway) -> Server[Any]:
    """The gateway as a server of both protocol eras."""

    async def list_tools(
        ctx: ServerRequestContext[Any, Any], _params: types.PaginatedRequestParams | None
    ) -> dict[str, Any]:
        return _kept(ctx, {"tools": await gateway.list_tools(), "ttlMs": LIST_TTL_MS, "cacheScope": "private"})

    async def call_tool(ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams) -> dict[str, Any]:
        result = await gateway.call(
            params.name, params.arguments or {}, meta=_foreign_meta(ctx), progress=_progress(ctx)
        )
        return _kept(ctx, result)

    server: Server[Any] = Server(
        "pegboard",
        version=version("pegboard"),
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,  # type: ignore[arg-type]  # the SDK takes dictionaries as well
        on_call_tool=call_tool,  # type: ignore[arg-type]
    )
    server.middleware.append(verbatim)
    return server


async def verbatim(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
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


def _kept(ctx: ServerRequestContext[Any, Any], result: Mapping[str, Any]) -> dict[str, Any]:
    """The result in the envelope of the caller's era, left for `verbatim`."""
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        shaped = {"resultType": "complete"} | dict(result)
    else:
        shaped = {key: value for key, value in result.items() if key not in MODERN_KEYS}
    holder = _verbatim.get()
    if holder is not None:
        holder.append(shaped)
    return shaped


def _progress(ctx: ServerRequestContext[Any, Any]) -> ProgressFnT:
    """Progress goes to the request that caused it (M17); the SDK drops it where the caller did not ask for any."""

    async def report(progress: float, total: float | None, message: str | None) -> None:
        await ctx.session.report_progress(progress, total, message)

    return report


def _foreign_meta(ctx: ServerRequestContext[Any, Any]) -> dict[str, Any]:
    """The caller's own `_meta` keys; those of the protocol belong to each hop."""
    sent = (ctx.params or {}).get("_meta") or {}
    return {key: value for key, value in sent.items() if key not in OURS and not key.startswith(RESERVED_PREFIX)}
