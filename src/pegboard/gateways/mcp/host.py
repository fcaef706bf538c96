"""One fleet of servers behind any number of endpoints: the whole board, and each toolset."""

from __future__ import annotations

import asyncio
import glob
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from mcp.server.stdio import stdio_server

from pegboard.catalog import Catalog
from pegboard.compose import Parts, build, default_parts
from pegboard.gateways.mcp.gateway import Gateway
from pegboard.gateways.mcp.server import wire
from pegboard.gateways.mcp.sessions import SessionBook
from pegboard.gateways.mcp.usage import Usage
from pegboard.settings import Settings
from pegboard.stores import MemorySessions
from pegboard.upstreams import Fleet


class Host:
    """Servers, started once, and the gateways before them. Use it as a context."""

    def __init__(self, settings: Settings, parts: Parts) -> None:
        self.settings = settings
        self.fleet = Fleet(
            settings.enabled_servers,
            connect_timeout=settings.connect_timeout,
            call_timeout=settings.call_timeout,
            events=parts.events,
            clock=parts.clock,
            on_change=self._on_change,
        )
        self._parts = parts
        self._usage = Usage(parts.statistics)
        self._often: tuple[str, ...] = ()
        self._gateways: dict[str, Gateway] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Host]:
        self._often = tuple(glob.escape(str(tool)) for tool in await self._usage.most_called(self.settings.often_used))
        self.gateway()
        async with self.fleet:
            flushing = asyncio.create_task(self._usage.run())
            try:
                yield self
            finally:
                flushing.cancel()
                await self._usage.flush()
                for gateway in self._gateways.values():
                    gateway.close()

    def gateway(self, toolset: str = "") -> Gateway:
        """The gateway of a toolset; without a name, that of the whole board."""
        if toolset not in self._gateways:
            self._gateways[toolset] = self._make(toolset)
        return self._gateways[toolset]

    def _make(self, toolset: str) -> Gateway:
        settings = self.settings.model_copy(
            update={"always_available": (*self.settings.always_available, *self._often)}
        )
        return Gateway(
            settings,
            build(settings, Catalog.build([]), parts=self._parts, patient=False),
            self.fleet,
            events=self._parts.events,
            clock=self._parts.clock,
            book=SessionBook(self._parts.sessions, toolset),
            observe=self._usage.observe,
        )

    async def _on_change(self) -> None:
        for gateway in self._gateways.values():
            await gateway.view.catalog_changed()


@asynccontextmanager
async def open_host(settings: Settings, parts: Parts | None = None) -> AsyncIterator[Host]:
    """Servers started, and ended at the end."""
    async with Host(settings, default_parts(settings) if parts is None else parts).running() as host:
        yield host


@asynccontextmanager
async def open_gateway(settings: Settings, parts: Parts | None = None) -> AsyncIterator[Gateway]:
    """A gateway for one client, with its servers started, and ended at the end. Its session ends with it."""
    parts = default_parts(settings) if parts is None else parts
    async with open_host(settings, replace(parts, sessions=MemorySessions(parts.clock))) as host:
        yield host.gateway()


async def serve_stdio(settings: Settings) -> None:
    """Serve one client on standard input and output until it hangs up; then end every server.

    An interrupt ends the process at once, as SIGTERM does: a thread that waits for input cannot be called back, and
    every server's reaper ends what it watches when the gateway is gone.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    async with open_gateway(settings) as gateway, stdio_server() as (read, write):
        server = wire(gateway)
        await server.run(read, write, server.create_initialization_options())
