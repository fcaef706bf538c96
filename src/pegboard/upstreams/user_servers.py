"""One user's view of a fleet: the servers that all share, and the user's own connections to the others."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import mcp_types as types
from mcp.shared.dispatcher import ProgressFnT

from pegboard.catalog import Catalog
from pegboard.flags import Flag
from pegboard.model import JsonObject, ServerName, ToolId
from pegboard.upstreams.client_levels import ClientLevels
from pegboard.upstreams.extension_requests import AnyNotification
from pegboard.upstreams.fleet import Fleet, Listener, Listeners, NewsListener
from pegboard.upstreams.per_client import RunningServer
from pegboard.upstreams.server_requests import AskRoots, ConnectedClients
from pegboard.upstreams.status import ServerStatus
from pegboard.upstreams.upstream import Upstream

LOGGER = logging.getLogger(__name__)


class UserServers:
    """The servers of one user, who is asked for credentials to those with ``per_user`` and has their own connections,
    lists and results there. Nothing of one user's servers reaches another's.

    A connection opens with the user's first request, ends after ``idle_stop`` seconds without a call, and opens again
    with the next one. ``on_change``, ``on_news`` and ``admit`` are as for a `Fleet`, for these connections alone.
    """

    def __init__(
        self,
        fleet: Fleet,
        user: str,
        *,
        idle_stop: float,
        admit: Callable[[ToolId], Awaitable[None]],
        on_change: Listener,
        on_news: NewsListener,
    ) -> None:
        self.user = user
        self._fleet = fleet
        self._options = replace(
            fleet.options,
            lazy=True,
            idle_stop=idle_stop,
            admit=admit,
            clients=ConnectedClients(),
            levels=ClientLevels(),
        )
        self._on_change = on_change
        self._listeners = Listeners(changed=self._changed, heard=self._heard)
        self._on_news = on_news
        self._own: dict[str, RunningServer] = {}
        self._news = Flag()
        self.follow()

    def follow(self) -> None:
        """Start and end connections as the fleet's configuration says now."""
        specs = {each.spec.name: each.spec for each in self._fleet.upstreams if each.spec.per_user}
        before = dict(self._own)
        self._end([name for name, each in before.items() if specs.get(name) != each.upstream.spec])
        for name, spec in specs.items():
            if name not in self._own:
                self._own[name] = self._fleet.start_for_user(spec, self.user, self._options, self._listeners)
                if name in before:
                    self._own[name].upstream.go_on_for(before[name].upstream)
        self.tell()

    def tell(self) -> None:
        """The servers of the fleet have changed."""
        self._news.set()
        self._news = Flag()

    def close(self) -> None:
        self._end(list(self._own))

    def is_own(self, server: str) -> bool:
        return server in self._own

    @property
    def own(self) -> list[Upstream]:
        """The user's own connections."""
        return [each.upstream for each in self._own.values()]

    @property
    def upstreams(self) -> list[Upstream]:
        """In configuration order."""
        return [self._mine(each) for each in self._fleet.upstreams]

    def upstream(self, server: str) -> Upstream:
        """The server of a name. Raises NotCarriedOut if there is none."""
        return self._own[server].upstream if server in self._own else self._fleet.upstream(server)

    def reached(self, server: str) -> Upstream:
        """As `Fleet.reached`."""
        return self._own[server].upstream if server in self._own else self._fleet.reached(server)

    def catalog(self) -> Catalog:
        """The tools that each server lists to this user."""
        return Catalog.build((each.server, each.tools) for each in self.upstreams)

    def listed(self) -> Catalog:
        """The tools that the user's own connections list, without those that stand for others."""
        return Catalog.build((each.server, () if each.is_placeholder else each.tools) for each in self.own)

    def is_placeholder(self, tool: ToolId) -> bool:
        """Whether a tool is ours, and not its server's."""
        return tool.server in self._own and self._own[tool.server].upstream.is_placeholder

    def status(self) -> list[ServerStatus]:
        return [each.status for each in self.upstreams]

    def connections(self) -> Mapping[str, float]:
        """As `Fleet.connections`, for the servers that all share."""
        return {name: seconds for name, seconds in self._fleet.connections().items() if name not in self._own}

    async def settled(self, timeout: float, *, some: bool = False) -> bool:
        """As `Fleet.settled`."""

        def done() -> bool:
            statuses = self.status()
            return all(each.heard_of for each in statuses) or (some and any(each.tools for each in statuses))

        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while not done():
                    await self._news.wait()
        return done()

    async def call(
        self,
        tool: ToolId,
        arguments: JsonObject | None,
        *,
        meta: Mapping[str, Any] | None = None,
        progress: ProgressFnT | None = None,
    ) -> dict[str, Any]:
        """The unchanged result of the tool's server."""
        return await self.reached(tool.server).call(tool.name, arguments, meta=meta, progress=progress)

    def join(self, client: str, ask: AskRoots | None) -> None:
        """A client of the user has connected. The user's own servers may ask it for its roots, and no other's."""
        self._options.clients.join(client, ask)
        self._fleet.join(client, ask)

    def leave(self, client: str) -> None:
        self._options.clients.leave(client)
        self._fleet.leave(client)

    def roots_changed(self, client: str | None) -> None:
        self._fleet.roots_changed(client, self.own)

    async def set_level(self, client: str, level: types.LoggingLevel) -> None:
        """As `Fleet.set_level`, for the user's own servers too."""
        self._options.levels.put(client, level)
        await asyncio.gather(self._fleet.set_level(client, level), *(each.say_level() for each in self.own))

    def forget(self, client: str) -> None:
        self._options.levels.forget(client)
        self._fleet.forget(client)
        self.leave(client)

    async def stop_idle(self, *, rest: float = math.inf) -> None:
        """End the connections without a call for ``idle_stop`` seconds, or ``rest`` where the server has no sessions;
        their tools stay known."""
        for each in self.own:
            await each.stop_if_idle(rest)

    def _mine(self, shared: Upstream) -> Upstream:
        found = self._own.get(shared.spec.name)
        return shared if found is None else found.upstream

    async def _changed(self, _upstream: Upstream) -> None:
        self.tell()
        try:
            await self._on_change()
        except Exception:
            LOGGER.exception("A listener failed on a change of a user's servers")

    async def _heard(self, server: ServerName, message: types.ServerNotification | AnyNotification) -> None:
        await self._on_news(server, message)

    def _end(self, names: list[str]) -> None:
        for name in names:
            running = self._own.pop(name)
            running.upstream.stop()
            running.scope.cancel()
