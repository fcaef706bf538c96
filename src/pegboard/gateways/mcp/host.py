"""One fleet of servers behind any number of endpoints: the whole board, and each toolset."""

from __future__ import annotations

import asyncio
import glob
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace

from pegboard.board import Board
from pegboard.catalog import Catalog
from pegboard.compose import Parts, build, default_parts
from pegboard.errors import ConfigError, PegboardError
from pegboard.gateways.mcp.clients import client_rows
from pegboard.gateways.mcp.gateway import Gateway
from pegboard.gateways.mcp.sessions import SessionBook
from pegboard.gateways.mcp.toolsets import Toolset
from pegboard.gateways.mcp.usage import Usage
from pegboard.settings import Settings
from pegboard.stores import MemorySessions
from pegboard.upstreams import Changes, Fleet


class NoToolset(ConfigError):  # noqa: N818
    """An address that names no toolset."""

    http_status = 404

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(
            f"There is no toolset {name!r}.",
            remedy=f"Configured are: {', '.join(known) or 'none'}.",
        )


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
            definitions=parts.definitions,
            lazy=settings.lazy,
            idle_stop=settings.idle_stop,
        )
        self._parts = parts
        self._usage = Usage(parts.statistics)
        self._often: tuple[str, ...] = ()
        self._gateways: dict[str, Gateway] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Host]:
        often = await self._usage.most_called(self.settings.often_used, self.settings.enabled_servers)
        self._often = tuple(glob.escape(str(tool)) for tool in often)
        self._check()
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
        """The gateway of a toolset; without a name, that of the whole board. Raises NoToolset."""
        if toolset not in self._gateways:
            settings, chosen = self._settings_of(toolset)
            self._gateways[toolset] = Gateway(
                settings,
                self._board(settings),
                self.fleet,
                events=self._parts.events,
                clock=self._parts.clock,
                book=SessionBook(self._parts.sessions, toolset),
                observe=self._usage.observe,
                toolset=chosen,
            )
            self._gateways[toolset].view.renew()
        return self._gateways[toolset]

    async def reconfigure(self, settings: Settings) -> Changes:
        """Follow another configuration: servers that did not change stay, and so do sessions (M27).

        Raises ConfigError, and changes nothing, for one that cannot be followed.
        """
        before, self.settings = self.settings, settings
        try:
            self._check()
            adopted = {
                name: (*self._settings_of(name), gateway)
                for name, gateway in self._gateways.items()
                if not name or name in settings.toolsets
            }
            boards = {name: self._board(of_toolset) for name, (of_toolset, _, _) in adopted.items()}
        except PegboardError:
            self.settings = before
            raise
        for name in set(self._gateways) - set(adopted):
            self._gateways.pop(name).close()
        for name, (of_toolset, chosen, gateway) in adopted.items():
            gateway.adopt(of_toolset, boards[name], chosen)
        return await self.fleet.apply(settings.enabled_servers)

    def _check(self) -> None:
        """Raises ConfigError for clients and toolsets that cannot be, before anybody asks for them."""
        client_rows(self.settings.clients)
        for toolset in self.settings.toolsets:
            self._settings_of(toolset)

    def _settings_of(self, toolset: str) -> tuple[Settings, Toolset | None]:
        """The settings as a toolset changes them, and the toolset. Raises ConfigError for what cannot be followed."""
        settings, chosen, changes = self.settings, None, {}
        always = settings.always_available
        if toolset:
            if toolset not in settings.toolsets:
                raise NoToolset(toolset, settings.toolsets)
            own = settings.toolsets[toolset]
            chosen = Toolset.of(toolset, own)
            always = always if own.always_available is None else own.always_available
            changes = {"exposure": own.exposure} if own.exposure else {}
        return settings.model_copy(update=changes | {"always_available": (*always, *self._often)}), chosen

    def _board(self, settings: Settings) -> Board:
        return build(settings, Catalog.build([]), parts=self._parts, patient=False)

    async def _on_change(self) -> None:
        for gateway in self._gateways.values():
            gateway.view.renew()


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
