"""The LLM gateway with its current configuration. A changed configuration replaces the previous one (M27).

Requests in flight finish under the configuration they began with; new requests use the new one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from starlette.types import Receive, Scope, Send

from pegboard.errors import PegboardError
from pegboard.gateways.llm.proxy.app import LlmApp
from pegboard.settings import Settings

AppOf = Callable[[Settings], LlmApp]
"""Builds the application of a configuration, not opened yet. Raises ConfigError."""
TakeUp = Callable[[], Awaitable[None]]
RANKED_BY = (
    *("profile", "k", "threshold", "calibration", "query", "recall", "budget", "pool", "economics", "breakers"),
    *("spend", "activity"),
)
"""Settings besides `llm` that its boards depend on: prices of tools, and whether events have texts, among them."""
USED = ("llm", "rates", "items", "results", "programs", *RANKED_BY)
"""Settings that the application depends on."""


@dataclass(slots=True, kw_only=True)
class OpenApp:
    """An application with its connections, the number of its requests in flight, and whether it has been replaced."""

    app: LlmApp
    connections: AsyncExitStack = field(default_factory=AsyncExitStack)
    underway: int = 0
    replaced: bool = False


class Models:
    """An ASGI application in front of the configured providers. Close it at the end."""

    def __init__(self, app_of: AppOf) -> None:
        self._app_of = app_of
        self._settings: Settings | None = None
        self._now: OpenApp | None = None
        self._replaced: list[OpenApp] = []

    @property
    def serves(self) -> bool:
        """Whether the LLM gateway is enabled."""
        return self._now is not None

    def prepare(self, settings: Settings) -> TakeUp:
        """Returns a function that activates a configuration once everything else is ready. Raises ConfigError and
        changes nothing."""
        if self._settings is not None and _same(self._settings, settings) and not settings.items.files:
            return _nothing  # what files say may have changed
        new = OpenApp(app=self._app_of(settings)) if settings.llm.serves else None

        async def take_up() -> None:
            self._settings = settings
            if new is not None:
                await new.connections.enter_async_context(new.app.opened())
            before, self._now = self._now, new
            if before is not None:
                before.replaced = True
                self._replaced.append(before)
                await self._close_unused(before)

        return take_up

    def end_shadows(self) -> None:
        """Drop the selections in the shadow, as the process is about to end."""
        for each in self._every:
            each.app.end_shadows()

    async def close(self) -> None:
        """Close everything, including requests in flight."""
        for each in self._every:
            await each.connections.aclose()
        self._now = None
        self._replaced.clear()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        now = self._current()
        now.underway += 1
        try:
            await now.app(scope, receive, send)
        finally:
            now.underway -= 1
            await self._close_unused(now)

    async def refuse(self, error: PegboardError, scope: Scope, send: Send) -> None:
        await self._current().app.refuse(error, scope, send)

    @property
    def _every(self) -> tuple[OpenApp, ...]:
        return (*self._replaced, *([self._now] if self._now else []))

    def _current(self) -> OpenApp:
        if self._now is None:
            raise RuntimeError("The LLM gateway is not enabled")
        return self._now

    async def _close_unused(self, each: OpenApp) -> None:
        if each.replaced and not each.underway and each in self._replaced:
            self._replaced.remove(each)
            await each.connections.aclose()


def _same(one: Settings, other: Settings) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in USED)


async def _nothing() -> None:
    pass
