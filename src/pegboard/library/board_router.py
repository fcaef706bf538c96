"""The routing of a board: its own tools and those of the servers it shares."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace

from pegboard.catalog import Catalog
from pegboard.compose import Parts, build_routing
from pegboard.library.given_tools import GivenTools
from pegboard.library.runtime import BoardRuntime, reset_at_fork
from pegboard.model import Decision
from pegboard.protection import kind_of, known_classes
from pegboard.protocols import VectorIndex
from pegboard.routing.decisions import with_active
from pegboard.routing_board import RoutingBoard

Seen = tuple[Parts, GivenTools, int]
"""What a catalog was built from: opened parts, own tools, and how often servers had changed theirs."""


class BoardRouting:
    """Opens on first use, and is renewed on the first turn after its tools have changed.

    ``aside`` is for tools that come and go with requests: their vectors are compared in memory and never written to the
    configured index.
    """

    def __init__(self, shared: BoardRuntime, given: GivenTools, *, aside: bool = False) -> None:
        self.shared = shared
        self.given = given
        """The board's own tools; may be replaced at any time."""
        self._aside = aside
        self._now: tuple[RoutingBoard, Seen] | None = None
        reset_at_fork(self)

    @property
    def routing(self) -> RoutingBoard:
        return self._current() or self.shared.run(self.ready())

    async def ready(self) -> RoutingBoard:
        """The routing; call it in the portal's loop."""
        parts = await self.shared.opened()
        current = self._current()
        if current is None:
            await asyncio.to_thread(known_classes)  # reads a table, once
            async with self.shared.renewing:
                current = self._current() or await self._renewed(parts)
        return current

    def forget(self) -> object:
        """Reset after a fork; returns everything that belongs to the parent process."""
        theirs, self._now = self._now, None
        return theirs

    def _current(self) -> RoutingBoard | None:
        """The current routing if nothing has changed since."""
        if self._now is None:
            return None
        routing, (parts, given, changes) = self._now
        shared = self.shared
        fresh = parts is shared.parts and given is self.given and changes == shared.changes
        return routing if fresh else None

    async def _renewed(self, parts: Parts) -> RoutingBoard:
        seen = (parts, self.given, self.shared.changes)
        catalog = self._catalog(seen[1])
        before = self._now
        if before is None or before[1][0] is not parts:
            mine = replace(parts, index=_in_memory, fallback_index=_in_memory) if self._aside else parts
            routing = await asyncio.to_thread(build_routing, self.shared.settings, catalog, parts=mine)
        else:
            routing = before[0]
            if catalog.fingerprint != routing.catalog.fingerprint:
                routing.replace_catalog(catalog)
        self._now = (routing, seen)
        return routing

    def _catalog(self, given: GivenTools) -> Catalog:
        groups = {server.name: (server, tools) for server, tools in given.groups}
        return Catalog.build([*(groups | dict(self.shared.listed())).values()])


def _in_memory(_board: str) -> VectorIndex | None:
    return None


def with_protected(decision: Decision, catalog: Catalog, servers: Iterable[str]) -> Decision:
    """The decision plus the protected tools of these servers that the caller may use (`pegboard.protection`).

    Tools of MCP servers come from catalogs and are never protected, whatever their names.
    """
    own = [tool.id for server in servers for tool in catalog.of_server(server) if kind_of(tool.name)]
    missing = [tool for tool in own if tool in decision.reachable and tool not in decision.active]
    return with_active(decision, catalog, [*decision.active, *missing]) if missing else decision
