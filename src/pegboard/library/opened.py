"""The routing of a board: its own tools beside those of the servers that it shares."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from pegboard.board import Board as Routing
from pegboard.catalog import Catalog
from pegboard.compose import Parts, build
from pegboard.library.forks import forgets_at_fork
from pegboard.library.shared import Shared
from pegboard.library.sources import Given
from pegboard.protected import known_classes
from pegboard.seams import VectorIndex

Seen = tuple[Parts, Given, int]
"""What a catalog was made of: opened parts, one's own tools, and how often servers had changed theirs."""


class Opened:
    """Opens with its first use, and is renewed with the first turn after its tools have changed.

    ``aside`` is for tools that come and go with requests: their vectors are compared in memory, and leave nothing on
    the index that is configured.
    """

    def __init__(self, shared: Shared, given: Given, *, aside: bool = False) -> None:
        self.shared = shared
        self.given = given
        """Tools of one's own; others may be put in their place at any time."""
        self._aside = aside
        self._now: tuple[Routing, Seen] | None = None
        forgets_at_fork(self)

    @property
    def routing(self) -> Routing:
        return self._current() or self.shared.run(self.ready())

    async def ready(self) -> Routing:
        """The routing, from within the portal's loop."""
        parts = await self.shared.opened()
        current = self._current()
        if current is None:
            await asyncio.to_thread(known_classes)  # a table is read, once
            async with self.shared.renewing:
                current = self._current() or await self._renewed(parts)
        return current

    def forget(self) -> object:
        """Begin anew in a forked process; returns all that is the parent's."""
        theirs, self._now = self._now, None
        return theirs

    def _current(self) -> Routing | None:
        """What there is, where nothing has changed since."""
        if self._now is None:
            return None
        routing, (parts, given, changes) = self._now
        shared = self.shared
        fresh = parts is shared.parts and given is self.given and changes == shared.changes
        return routing if fresh else None

    async def _renewed(self, parts: Parts) -> Routing:
        seen = (parts, self.given, self.shared.changes)
        catalog = self._catalog(seen[1])
        before = self._now
        if before is None or before[1][0] is not parts:
            mine = replace(parts, index=_in_memory, fallback_index=_in_memory) if self._aside else parts
            routing = await asyncio.to_thread(build, self.shared.settings, catalog, parts=mine)
        else:
            routing = before[0]
            if catalog.fingerprint != routing.catalog.fingerprint:
                routing.replace_catalog(catalog)
        self._now = (routing, seen)
        return routing

    def _catalog(self, given: Given) -> Catalog:
        groups = {server.name: (server, tools) for server, tools in given.groups}
        return Catalog.build([*(groups | dict(self.shared.listed())).values()])


def _in_memory(_board: str) -> VectorIndex | None:
    return None
