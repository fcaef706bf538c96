"""Tools and servers that an operator has switched off, and definitions that one has rejected: kept in the store,
followed by every process on it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from itertools import groupby

from pegboard.errors import PegboardError
from pegboard.model import Fingerprint, ToolId
from pegboard.protocols import Archive, Clock
from pegboard.records import Key, SwitchRecord
from pegboard.store_health import StoreHealth

REFRESH_SECONDS = 5.0
"""Seconds after which a switch of another process is known at the latest."""


class Switches:
    """What is switched off. ``changed`` is called when that has changed.

    A tool's general switch and each rejection of a definition are records of their own: none of them lifts another.
    Before the store has answered for the first time nothing counts as switched off; while it fails, its last answer
    holds.
    """

    def __init__(self, archive: Archive, clock: Clock, changed: Callable[[], None]) -> None:
        self._archive = archive
        self._clock = clock
        self._changed = changed
        self._health = StoreHealth("What is switched off cannot be read")
        self.records: Mapping[Key, SwitchRecord] = {}
        """By server, name (empty for the whole server) and definition (empty for any)."""
        self._definitions: Mapping[ToolId, frozenset[str]] = {}
        """By tool, the definitions that are off; the empty one is any."""

    async def turn_off(self, tool: ToolId, *, who: str, definition: str = "") -> None:
        """Switch a tool off, or a server as `ToolId.whole`; with a ``definition``, while it has that one: rejected.

        Raises StoreError.
        """
        await self.read()
        known = self.records.get((*tool, definition))
        now = self._clock.time() if known is None else max(self._clock.time(), math.nextafter(known.at, math.inf))
        record = SwitchRecord(server=tool.server, name=tool.name, definition=definition, who=who, at=now)
        await self._archive.write([record])
        await self.read()

    async def turn_on(self, tool: ToolId, definition: str = "") -> None:
        """Lift the general switch, or the rejection of a definition. Raises StoreError."""
        await self._archive.remove("switch", keys=[(*tool, definition)])
        await self.read()

    async def read(self) -> None:
        """Raises StoreError."""
        found = [each async for each in self._archive.read("switch") if isinstance(each, SwitchRecord)]
        records = {each.identity: each for each in found}
        if records != self.records:
            self.records = records
            self._definitions = {
                ToolId(*tool): frozenset(definition for _, _, definition in keys)
                for tool, keys in groupby(sorted(records), key=lambda key: key[:2])
            }
            self._changed()

    async def follow(self) -> None:
        """Read them; a store that fails is reported once."""
        try:
            await self.read()
        except PegboardError as error:
            self._health.began(error)
        else:
            self._health.ended()

    async def run(self) -> None:
        """Follow the store until cancelled."""
        while True:
            await self.follow()
            await asyncio.sleep(REFRESH_SECONDS)

    def is_off(self, tool: ToolId, definition: Callable[[], Fingerprint]) -> bool:
        """Whether the tool, or its server, is off. ``definition`` is asked for where one was rejected."""
        if not self._definitions:
            return False
        off = self._definitions.get(tool)
        return self.is_server_off(tool.server) or (off is not None and ("" in off or definition() in off))

    def is_server_off(self, server: str) -> bool:
        return "" in self._definitions.get(ToolId(server, ""), ())

    def is_rejected(self, tool: ToolId, definition: str = "") -> bool:
        """Whether this definition of the tool was rejected; without one, whether any was."""
        off = self._definitions.get(tool, frozenset())
        return definition in off if definition else any(off)
