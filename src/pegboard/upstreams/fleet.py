"""All servers at once: each on its own, none waiting for another (M15)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any

import anyio
from mcp.shared.dispatcher import ProgressFnT

from pegboard.catalog import Catalog
from pegboard.errors import UpstreamError
from pegboard.events import ServerChanged
from pegboard.model import JsonObject, ToolId
from pegboard.seams import Clock, EventSink
from pegboard.server_spec import ServerSpec
from pegboard.upstreams.upstream import ServerStatus, Upstream

LOGGER = logging.getLogger(__name__)

Listener = Callable[[], Awaitable[None]]


class Fleet:
    """Starts every server on entering and ends every process on leaving.

    ``on_change`` is awaited whenever the tools that can be called are others than before.
    """

    def __init__(
        self,
        specs: Mapping[str, ServerSpec],
        *,
        connect_timeout: float,
        call_timeout: float,
        events: EventSink,
        clock: Clock,
        environment: Mapping[str, str] | None = None,
        on_change: Listener | None = None,
    ) -> None:
        self._events = events
        self._clock = clock
        self._on_change = on_change
        self._settled = asyncio.Condition()
        self._tasks = anyio.create_task_group()
        self._upstreams = {
            name: Upstream(
                spec,
                self._changed,
                connect_timeout=connect_timeout,
                call_timeout=call_timeout,
                environment=environment,
            )
            for name, spec in specs.items()
        }

    async def __aenter__(self) -> Fleet:
        await self._tasks.__aenter__()
        for name, upstream in self._upstreams.items():
            self._tasks.start_soon(upstream.run, name=f"pegboard-{name}")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Structured cancellation only: a bare `Task.cancel` would break the SDK's shielded ending of processes."""
        self._tasks.cancel_scope.cancel()
        await self._tasks.__aexit__(kind, error, trace)

    async def settled(self, timeout: float) -> bool:
        """Wait until every server is ready or known to be unhealthy; false where time ran out first."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout), self._settled:
                await self._settled.wait_for(lambda: all(each.state != "starting" for each in self.status()))
        return all(each.state != "starting" for each in self.status())

    def catalog(self) -> Catalog:
        """The tools that each server listed last, in the order of the configuration.

        A server that is down keeps its tools: what a client was listed does not come and go with it.
        """
        return Catalog.build((upstream.server, upstream.tools) for upstream in self._upstreams.values())

    def status(self) -> list[ServerStatus]:
        return [upstream.status for upstream in self._upstreams.values()]

    async def call(
        self,
        tool: ToolId,
        arguments: JsonObject | None,
        *,
        meta: Mapping[str, Any] | None = None,
        progress: ProgressFnT | None = None,
    ) -> dict[str, Any]:
        """The result of the tool's server, untouched."""
        if tool.server not in self._upstreams:
            raise UpstreamError(tool.server, f"No server {tool.server!r} is configured.")
        return await self._upstreams[tool.server].call(tool.name, arguments, meta=meta, progress=progress)

    async def _changed(self, upstream: Upstream) -> None:
        status = upstream.status
        self._events.emit(
            ServerChanged(
                at=self._clock.time(), server=status.name, state=status.state, reason=status.reason, tools=status.tools
            )
        )
        if self._on_change is not None:
            try:
                await self._on_change()
            except Exception:
                LOGGER.exception("A listener failed on a change of server %s", status.name)
        async with self._settled:
            self._settled.notify_all()
