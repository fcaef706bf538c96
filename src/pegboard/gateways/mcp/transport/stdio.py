"""`pegboard mcp`: one client on standard input and output."""

from __future__ import annotations

import signal
from contextlib import AsyncExitStack
from dataclasses import replace

from pegboard.compose import events_and, opened_parts
from pegboard.gateways.mcp.gateway.host import open_host
from pegboard.gateways.mcp.transport.config_reload import Source
from pegboard.gateways.mcp.transport.gateway_server import wire
from pegboard.gateways.mcp.transport.standard_streams import standard_streams
from pegboard.settings import Exposure, Settings
from pegboard.stores import MemorySessions, MemorySigningKeys
from pegboard.telemetry.activity_recorder import ActivityRecorder
from pegboard.telemetry.otel.otel_lifetime import opened_otel


async def serve_stdio(
    settings: Settings,
    source: Source = Source(),  # noqa: B008
    *,
    toolset: str = "",
    exposure: Exposure | None = None,
) -> None:
    """Serve one client until it disconnects; then end its session and every server.

    An interrupt ends the process at once, as SIGTERM does: a thread that is waiting for input cannot be cancelled. The
    servers are ended by their reapers when the gateway is gone.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    async with AsyncExitStack() as stack:
        settings, load = settings.for_one_person, source.load
        source = replace(source, load=lambda: load().for_one_person)
        otel = await stack.enter_async_context(opened_otel(settings.otel))
        recorder = ActivityRecorder(settings.activity.table) if settings.activity.keep == "store" else None
        events = events_and(*(each for each in (otel, recorder) if each is not None))
        tracer = None if otel is None else otel.tracer
        parts = await stack.enter_async_context(opened_parts(settings, events=events, tracer=tracer))
        if recorder is not None and parts.activity is not None:
            await stack.enter_async_context(recorder.running(parts.activity))
        parts = replace(parts, sessions=MemorySessions(parts.clock), signing_keys=MemorySigningKeys(), replicas=None)
        host = await stack.enter_async_context(open_host(settings, parts))
        read, write = await stack.enter_async_context(standard_streams())
        server = wire(host.gateway(toolset), exposure=exposure, tracer=parts.tracer)
        async with source.followed(host):
            await server.run(read, write, server.create_initialization_options())
