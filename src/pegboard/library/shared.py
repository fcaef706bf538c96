"""What boards of one configuration have in common: a loop, stores, an encoder, servers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from pegboard.compose import Parts, default_parts
from pegboard.errors import ConfigError
from pegboard.library.forks import forgets_at_fork
from pegboard.library.portal import Portal
from pegboard.model import JsonObject, Outcome, Server, Tool, ToolId
from pegboard.settings import Settings
from pegboard.usage import Usage

if TYPE_CHECKING:
    from pegboard.upstreams import Fleet

LOGGER = logging.getLogger(__name__)

T = TypeVar("T")


class Shared:
    """Opens with its first use: stores, the encoder, and servers, which have ``start_wait`` seconds to be heard of.

    In a process that was forked it opens anew: threads, connections and locks are the parent's.
    """

    def __init__(self, settings: Settings, replaced: Mapping[str, Any]) -> None:
        self.settings = settings
        self._replaced = replaced
        self._begin()
        forgets_at_fork(self)

    def _begin(self) -> None:
        self._portal = Portal()
        self._bind()
        self._parts: Parts | None = None
        self._fleet: Fleet | None = None
        self._serving: asyncio.Task[None] | None = None
        self._usage: Usage | None = None
        self._counting: asyncio.Task[None] | None = None
        self.changes = 0
        """How often servers have changed what they list."""

    def _bind(self) -> None:
        """What belongs to one loop."""
        self._opening = asyncio.Lock()
        self._ended = asyncio.Event()
        self.renewing = asyncio.Lock()

    @property
    def parts(self) -> Parts | None:
        """None while nothing is open."""
        return self._parts

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._portal.run(work)

    async def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return await self._portal.wait(work)

    async def opened(self) -> Parts:
        """The parts, from within the portal's loop."""
        if self._parts is not None:
            return self._parts
        async with self._opening:
            if self._parts is None:
                parts = await asyncio.to_thread(default_parts, self.settings, **self._replaced)
                if self.settings.enabled_servers:
                    await self._start(parts)
                self._usage = Usage(parts.statistics, parts.knowledge.observe, parts.resting.observe)
                self._counting = asyncio.create_task(self._usage.run())
                self._parts = parts
            return self._parts

    def listed(self) -> Mapping[str, tuple[Server, tuple[Tool, ...]]]:
        """What the servers list now."""
        if self._fleet is None:
            return {}
        catalog = self._fleet.catalog()
        return {server.name: (server, catalog.of_server(name)) for name, server in catalog.servers.items()}

    async def call(self, tool: ToolId, arguments: JsonObject) -> dict[str, Any]:
        """What the tool's server answers. Raises UpstreamError where there is none, and MCPError as it says."""
        await self.opened()
        if self._fleet is None or tool.server not in self.settings.enabled_servers:
            raise _nothing_to_call(tool)
        return await self._fleet.call(tool, arguments)

    def observe(self, outcome: Outcome) -> None:
        """What came of a call, for the next turn at once and for the store in a moment."""
        if self._usage is None:
            self.run(self.opened())
        assert self._usage is not None  # noqa: S101 - it opens with the parts
        self._usage.observe(outcome)

    def close(self) -> None:
        """End servers, stores and the thread. What is used again opens again."""
        if self._portal.started:
            try:
                self._portal.run(self._closed())
            finally:
                self._portal.close()
        self._bind()

    def forget(self) -> object:
        """Begin anew in a forked process; returns all that is the parent's."""
        theirs = dict(vars(self))
        self._begin()
        return theirs

    async def _start(self, parts: Parts) -> None:
        """Start the servers, and wait until they have listed their tools, or have had their time."""
        listed = asyncio.Event()
        self._serving = asyncio.create_task(self._serve(parts, listed))
        waiting = asyncio.create_task(listed.wait())
        await asyncio.wait({self._serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._serving.done():
            self._serving.result()

    async def _serve(self, parts: Parts, listed: asyncio.Event) -> None:
        """The servers, in the one task that they live in."""
        settings = self.settings
        fleet = (await asyncio.to_thread(_fleet))(
            settings.enabled_servers,
            connect_timeout=settings.connect_timeout,
            call_timeout=settings.call_timeout,
            events=parts.events,
            clock=parts.clock,
            on_change=self._changed,
            definitions=parts.definitions,
            lazy=settings.lazy,
            idle_stop=settings.idle_stop,
        )
        async with fleet:
            self._fleet = fleet
            await fleet.settled(settings.start_wait)
            listed.set()
            await self._ended.wait()

    async def _changed(self) -> None:
        self.changes += 1

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
        self._parts = self._fleet = self._serving = self._usage = self._counting = None


def _fleet() -> type[Fleet]:
    """Brings the MCP SDK, which boards without servers do not need, and which takes a while to read."""
    from pegboard.upstreams import Fleet

    return Fleet


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
