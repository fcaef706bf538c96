"""Tools and servers that an operator has switched off: kept in the store, followed by every process on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from pegboard.errors import PegboardError
from pegboard.model import Fingerprint, ToolId
from pegboard.protocols import Archive, Clock
from pegboard.records import SwitchRecord
from pegboard.store_health import StoreHealth

REFRESH_SECONDS = 5.0
"""Seconds after which a switch of another process is known at the latest."""


class Switches:
    """What is switched off. ``changed`` is called when that has changed.

    Before the store has answered for the first time nothing counts as switched off; while it fails, its last answer
    holds.
    """

    def __init__(self, archive: Archive, clock: Clock, changed: Callable[[], None]) -> None:
        self._archive = archive
        self._clock = clock
        self._changed = changed
        self._health = StoreHealth("What is switched off cannot be read")
        self.off: Mapping[ToolId, SwitchRecord] = {}
        """By tool; a whole server as `ToolId.whole`."""

    async def turn_off(self, tool: ToolId, *, who: str, definition: str = "") -> None:
        """Switch a tool off, or a server as `ToolId.whole`; with a ``definition``, only while the tool has that one.

        What is off whatever its definition stays so. Raises StoreError.
        """
        await self.read()
        known = self.off.get(tool)
        if definition and known is not None and not known.definition:
            return
        now = self._clock.time()
        record = SwitchRecord(server=tool.server, name=tool.name, definition=definition, who=who, at=now)
        await self._archive.write([record])
        await self.read()

    async def turn_on(self, tool: ToolId) -> None:
        """Raises StoreError."""
        await self._archive.remove("switch", keys=[tuple(tool)])
        await self.read()

    async def read(self) -> None:
        """Raises StoreError."""
        found = [each async for each in self._archive.read("switch") if isinstance(each, SwitchRecord)]
        off = {ToolId(each.server, each.name): each for each in found}
        if off != self.off:
            self.off = off
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
        """Whether the tool, or its server, is off. ``definition`` is asked for where a switch holds for one alone."""
        if not self.off:
            return False
        switch = self.off.get(tool)
        return self.is_server_off(tool.server) or (switch is not None and switch.definition in ("", definition()))

    def is_server_off(self, server: str) -> bool:
        whole = self.off.get(ToolId(server, ""))
        return whole is not None and not whole.definition
