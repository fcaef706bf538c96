"""What stands behind a board of the library: its parts, its servers and the routing, on one loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from pegboard.board import Board as Routing
from pegboard.catalog import Catalog
from pegboard.compose import Parts, build, default_parts
from pegboard.errors import ConfigError
from pegboard.library.portal import Portal
from pegboard.library.sources import Given
from pegboard.model import JsonObject, Outcome, ToolId
from pegboard.settings import Settings
from pegboard.usage import Usage

if TYPE_CHECKING:
    from pegboard.upstreams import Fleet

LOGGER = logging.getLogger(__name__)

T = TypeVar("T")


class Opened:
    """Opens with its first use: stores, the encoder, and servers, which have ``start_wait`` seconds to be heard of."""

    def __init__(self, settings: Settings, given: Given, replaced: Mapping[str, Any]) -> None:
        self._settings = settings
        self.given = given
        """Tools of one's own; others may be put in their place at any time."""
        self._served: Given | None = None
        self._replaced = replaced
        self._portal = Portal()
        self._opening = asyncio.Lock()
        self._routing: Routing | None = None
        self._parts: Parts | None = None
        self._fleet: Fleet | None = None
        self._serving: asyncio.Task[None] | None = None
        self._usage: Usage | None = None
        self._counting: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()

    @property
    def routing(self) -> Routing:
        if self._routing is None or self._served is not self.given:
            return self.run(self.ready())
        return self._routing

    @property
    def parts(self) -> Parts:
        assert self._parts is not None  # noqa: S101 - for those who have the routing: they are opened together
        return self._parts

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._portal.run(work)

    async def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return await self._portal.wait(work)

    async def ready(self) -> Routing:
        """The routing, from within the portal's loop."""
        routing = self._routing or await self._opened()
        if self._served is not self.given:
            await self._renew()
        return routing

    async def call(self, tool: ToolId, arguments: JsonObject) -> dict[str, Any]:
        """What the tool's server answers. Raises UpstreamError where there is none, and MCPError as it says."""
        await self.ready()
        if self._fleet is None or tool.server not in self._settings.enabled_servers:
            raise _nothing_to_call(tool)
        return await self._fleet.call(tool, arguments)

    def observe(self, outcome: Outcome) -> None:
        """What came of a call, for the next turn at once and for the store in a moment."""
        if self._usage is None:
            self.run(self.ready())
        assert self._usage is not None  # noqa: S101 - it opens with the routing
        self._usage.observe(outcome)

    def close(self) -> None:
        """End servers, stores and the thread. What is used again opens again."""
        if self._portal.started:
            try:
                self._portal.run(self._closed())
            finally:
                self._portal.close()
        self._opening, self._ended = asyncio.Lock(), asyncio.Event()

    async def _opened(self) -> Routing:
        async with self._opening:
            if self._routing is None:
                self._parts = default_parts(self._settings, **self._replaced)
                if self._settings.enabled_servers:
                    listed = asyncio.Event()
                    self._serving = asyncio.create_task(self._serve(self._parts, listed))
                    waiting = asyncio.create_task(listed.wait())
                    await asyncio.wait({self._serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
                    waiting.cancel()
                    if self._serving.done():
                        self._serving.result()
                self._usage = Usage(self._parts.statistics, self._parts.knowledge.observe, self._parts.resting.observe)
                self._counting = asyncio.create_task(self._usage.run())
                self._routing = build(self._settings, self._catalog(), parts=self._parts)
            return self._routing

    async def _serve(self, parts: Parts, listed: asyncio.Event) -> None:
        """The servers, in the one task that they live in."""
        from pegboard.upstreams import Fleet  # brings the MCP SDK, which a board without servers does not need

        fleet = Fleet(
            self._settings.enabled_servers,
            connect_timeout=self._settings.connect_timeout,
            call_timeout=self._settings.call_timeout,
            events=parts.events,
            clock=parts.clock,
            on_change=self._renew,
            definitions=parts.definitions,
            lazy=self._settings.lazy,
            idle_stop=self._settings.idle_stop,
        )
        async with fleet:
            self._fleet = fleet
            await fleet.settled(self._settings.start_wait)
            listed.set()
            await self._ended.wait()

    async def _renew(self) -> None:
        if self._routing is not None:
            catalog = self._catalog()
            if catalog.fingerprint != self._routing.catalog.fingerprint:
                self._routing.replace_catalog(catalog)

    def _catalog(self) -> Catalog:
        self._served = self.given
        groups = {server.name: (server, tools) for server, tools in self._served.groups}
        if self._fleet is not None:
            of_servers = self._fleet.catalog()
            groups |= {server.name: (server, of_servers.of_server(name)) for name, server in of_servers.servers.items()}
        return Catalog.build(groups.values())

    async def _closed(self) -> None:
        self._ended.set()
        if self._serving is not None:
            await self._serving
        if self._counting is not None and self._usage is not None:
            self._counting.cancel()
            await asyncio.wait([self._counting])
            await _written(self._usage)
        if self._parts is not None:
            await self._parts.close()
        self._routing = self._parts = self._fleet = self._serving = self._usage = self._counting = None


async def _written(usage: Usage) -> None:
    """What was counted is in the store; of a board that nobody closed, all but what its last seconds brought."""
    try:
        await usage.flush()
    except RuntimeError as error:  # the interpreter ends, and starts no threads any more
        LOGGER.debug("Calls of the last seconds are not counted: %s", error)


def _nothing_to_call(tool: ToolId) -> ConfigError:
    return ConfigError(
        f"Tool {str(tool)!r} has neither a function nor a server.",
        remedy="Give its schema in a pair with what to call, or call it yourself.",
    )
