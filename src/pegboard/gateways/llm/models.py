"""The LLM gateway as it is configured now. A changed configuration takes the place of the one before (M27).

Requests that are under way come to their end as they began; those that come from then on are served by the new one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from starlette.types import Receive, Scope, Send

from pegboard.errors import PegboardError
from pegboard.gateways.llm.door import LlmDoor
from pegboard.settings import Settings

DoorOf = Callable[[Settings], LlmDoor]
"""Makes the door of a configuration, not opened yet. Raises ConfigError."""
TakeUp = Callable[[], Awaitable[None]]
RANKED_BY = ("profile", "k", "threshold", "calibration", "query", "recall", "budget", "pool", "economics", "breakers")
"""Settings besides `llm` that its boards are made of."""


@dataclass(slots=True, kw_only=True)
class Open:
    """A door with its connections, the number of requests in it, and whether another has taken its place."""

    door: LlmDoor
    connections: AsyncExitStack = field(default_factory=AsyncExitStack)
    underway: int = 0
    replaced: bool = False


class Models:
    """An ASGI application before the configured providers. Close it in the end."""

    def __init__(self, door_of: DoorOf) -> None:
        self._door_of = door_of
        self._settings: Settings | None = None
        self._now: Open | None = None
        self._replaced: list[Open] = []

    @property
    def serves(self) -> bool:
        """Whether the LLM gateway is switched on."""
        return self._now is not None

    def prepare(self, settings: Settings) -> TakeUp:
        """What takes a configuration up once everything else can be. Raises ConfigError, and changes nothing."""
        if self._settings is not None and _same(self._settings, settings):
            return _nothing
        new = Open(door=self._door_of(settings)) if settings.llm.serves else None

        async def take_up() -> None:
            self._settings = settings
            if new is not None:
                await new.connections.enter_async_context(new.door.opened())
            before, self._now = self._now, new
            if before is not None:
                before.replaced = True
                self._replaced.append(before)
                await self._close_unused(before)

        return take_up

    async def close(self) -> None:
        """Whatever is under way."""
        for each in (*self._replaced, *([self._now] if self._now else [])):
            await each.connections.aclose()
        self._now = None
        self._replaced.clear()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        now = self._current()
        now.underway += 1
        try:
            await now.door(scope, receive, send)
        finally:
            now.underway -= 1
            await self._close_unused(now)

    async def refuse(self, error: PegboardError, scope: Scope, send: Send) -> None:
        await self._current().door.refuse(error, scope, send)

    def _current(self) -> Open:
        if self._now is None:
            raise RuntimeError("Models are asked for only where they are served")
        return self._now

    async def _close_unused(self, each: Open) -> None:
        if each.replaced and not each.underway and each in self._replaced:
            self._replaced.remove(each)
            await each.connections.aclose()


def _same(one: Settings, other: Settings) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in ("llm", *RANKED_BY))


async def _nothing() -> None:
    pass
