"""How a process reads the pins of a store: those of many users at once, and only after something was approved."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import Context

from pegboard.errors import PegboardError
from pegboard.model import Fingerprint, Pin, ToolId, Wording
from pegboard.protocols import NO_TEXTS, Pins
from pegboard.store_health import StoreHealth

REFRESH_SECONDS = 10.0
"""Seconds after which an approval by another process is known at the latest."""


class ApprovalWatch:
    """Calls ``changed`` when something has been approved, by whichever process. The store is asked for one number,
    however many users there are, and not while nothing can be held back, as ``is_strict`` says."""

    def __init__(self, store: Pins, changed: Callable[[], None], *, is_strict: Callable[[], bool]) -> None:
        self._store = store
        self._changed = changed
        self._is_strict = is_strict
        self._version: int | None = None
        self._health = StoreHealth("Approvals of other processes cannot be read")

    async def look(self) -> None:
        """Ask the store once; one that fails is reported once."""
        if not self._is_strict():
            return
        try:
            version = await self._store.version()
        except PegboardError as error:
            self._health.began(error)
            return
        self._health.ended()
        if version != self._version:
            self._version = version
            self._changed()

    async def run(self) -> None:
        """Follow the store until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(REFRESH_SECONDS)


class GatheredPins:
    """The pins of a store. What several callers ask for in the same moment, or while an earlier answer is awaited, is
    read at once."""

    def __init__(self, store: Pins) -> None:
        self._store = store
        self._waiting: list[tuple[Sequence[ToolId], asyncio.Future[Mapping[ToolId, Pin]]]] = []
        self._reading: asyncio.Task[None] | None = None

    async def get(self, tools: Sequence[ToolId] | None = None) -> Mapping[ToolId, Pin]:
        if tools is None:
            return await self._store.get()
        if not tools:
            return {}
        answer: asyncio.Future[Mapping[ToolId, Pin]] = asyncio.get_running_loop().create_future()
        self._waiting.append((tools, answer))
        if self._reading is None:
            self._reading = asyncio.create_task(self._read(), context=Context())  # that of the caller has a token
        found = await answer
        return {tool: found[tool] for tool in tools if tool in found}

    async def put(
        self,
        seen: Mapping[ToolId, Fingerprint],
        *,
        texts: Mapping[ToolId, str] = NO_TEXTS,
        doubted: Collection[ToolId] = (),
    ) -> Mapping[ToolId, Pin]:
        return await self._store.put(seen, texts=texts, doubted=doubted)

    async def approve(self, tools: Mapping[ToolId, Fingerprint]) -> None:
        await self._store.approve(tools)

    async def wordings(self, tools: Sequence[ToolId]) -> Mapping[ToolId, Wording]:
        return await self._store.wordings(tools)

    async def version(self) -> int:
        return await self._store.version()

    async def _read(self) -> None:
        """Answer everybody who waits, until nobody does."""
        try:
            while self._waiting:
                await asyncio.sleep(0)  # others who were woken with the first one ask in this turn of the loop
                asked, self._waiting = self._waiting, []
                try:
                    found = await self._store.get(list({tool for tools, _ in asked for tool in tools}))
                except Exception as error:  # noqa: BLE001 - it is raised to those who asked
                    for _, answer in asked:
                        if not answer.done():
                            answer.set_exception(error)
                else:
                    for _, answer in asked:
                        if not answer.done():
                            answer.set_result(found)
        finally:
            self._reading = None
