"""Changes that a server announces: of its lists (M18), and of resources it is asked to watch."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import MappingProxyType

import anyio
import mcp_types as types
from anyio.abc import TaskGroup
from mcp import Client, MCPError
from mcp.client.subscriptions import SubscriptionLost
from pydantic import ValidationError

from pegboard.errors import PegboardError
from pegboard.protocols import Listing
from pegboard.upstreams.error_text import Redactor, described
from pegboard.upstreams.limits import UpstreamLimits
from pegboard.upstreams.raw_requests import untouched
from pegboard.upstreams.server_lists import read_listing
from pegboard.upstreams.stream_tasks import StreamTasks

LOGGER = logging.getLogger(__name__)

Heard = Callable[[types.ServerNotification], Awaitable[None]]

CHANGES = MappingProxyType(
    {"prompts": types.PromptListChangedNotification, "resources": types.ResourceListChangedNotification}
)
RELIST_PAUSE = 0.5
"""Minimum seconds between two listings."""
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 60.0
"""Seconds until a lost stream of notifications is opened again: the first pause, doubled up to the longest."""


class ListChanges:
    """Lists a server's tools again when it announces a change, at most once per `RELIST_PAUSE`, on one connection.

    In the handshake era announcements are messages; in the 2026 era they come on a stream that the client requests.
    """

    def __init__(self, server: str, redacted: Redactor, limits: UpstreamLimits, heard: Heard) -> None:
        """``heard`` is awaited with changes of other lists that were missed."""
        self._heard = heard
        self._server = server
        self._redacted = redacted
        self._limits = limits
        self._news = False
        self._relist: Callable[[], object] | None = None
        self._under_way = False

    async def on_message(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._changed()

    @contextmanager
    def followed(
        self, tasks: TaskGroup, client: Client, seconds: float, listed: Callable[[Listing], Awaitable[None]]
    ) -> Iterator[None]:
        """Await ``listed`` with every new listing, in tasks that run only when there is one. Each page may take
        ``seconds``."""
        self._relist = lambda: tasks.start_soon(self._list_on_news, client, seconds, listed)
        wanted = changing(client.server_capabilities)
        if client.session.discover_result and any(wanted.values()):
            tasks.start_soon(self._listen, client, wanted)
        if self._news:
            self._changed()
        try:
            yield
        finally:
            self._relist = None

    def _changed(self) -> None:
        self._news = True
        if self._relist is not None and not self._under_way:
            self._under_way = True
            self._relist()

    async def _list_on_news(self, client: Client, seconds: float, listed: Callable[[Listing], Awaitable[None]]) -> None:
        """List again after each announcement. If a listing fails, the old tools stay."""
        while self._news:
            self._news = False
            try:
                await listed(await read_listing(self._server, client, seconds, self._limits))
            except (MCPError, ValidationError, PegboardError) as error:
                why = self._redacted(described(error))
                LOGGER.warning("Server %s could not be listed again: %s", self._server, why)
            await asyncio.sleep(RELIST_PAUSE)
        self._under_way = False

    async def _listen(self, client: Client, wanted: dict[str, bool]) -> None:
        """Keep the stream open. Each time it opens, list once: changes may have been missed without it."""
        pause, missed = FIRST_PAUSE, list[types.ServerNotification]()
        while True:
            try:
                async with client.listen(**wanted) as subscription:  # type: ignore[arg-type]
                    pause = FIRST_PAUSE
                    self._changed()
                    for change in missed:
                        await self._heard(change)
                    missed = [notice() for name, notice in CHANGES.items() if wanted[f"{name}_list_changed"]]
                    async for _ in subscription:
                        pass
            except (MCPError, SubscriptionLost) as error:
                if isinstance(error, MCPError) and error.code == types.METHOD_NOT_FOUND:
                    return
                LOGGER.info("Server %s ended its announcements: %s", self._server, self._redacted(str(error)))
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)


class ResourceSubscriptions:
    """Resources that a server is asked to watch, on one connection.

    Subscriptions are requests in the handshake era and one stream per resource in the 2026 era. Updates come as
    messages.
    """

    def __init__(self, server: str, redacted: Redactor) -> None:
        self._server = server
        self._redacted = redacted
        self.streams = StreamTasks()

    async def add(self, client: Client, uri: str, seconds: float) -> None:
        """Watch a resource. Raises MCPError if the server refuses."""
        if not client.session.discover_result:
            await untouched(client, types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri)), seconds)
            return
        acknowledged = asyncio.Event()
        if self.streams.open(uri, partial(self._listen, client, uri, acknowledged)) and self.streams.are_running:
            with anyio.move_on_after(seconds):
                await acknowledged.wait()

    async def remove(self, client: Client, uri: str, seconds: float) -> None:
        if not client.session.discover_result:
            await untouched(client, types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri=uri)), seconds)
        self.streams.close(uri)

    async def _listen(self, client: Client, uri: str, acknowledged: asyncio.Event) -> None:
        pause = FIRST_PAUSE
        while True:
            with suppress(SubscriptionLost):
                try:
                    async with client.listen(resource_subscriptions=[uri]) as subscription:
                        acknowledged.set()
                        pause = FIRST_PAUSE
                        async for _ in subscription:
                            pass
                except MCPError as error:
                    why = self._redacted(described(error))
                    LOGGER.info("Server %s does not report changes of %s: %s", self._server, uri, why)
                    acknowledged.set()
                    if error.code == types.METHOD_NOT_FOUND:
                        return
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)


def changing(capabilities: types.ServerCapabilities) -> dict[str, bool]:
    """The lists whose changes a server announces, as parameters of `subscriptions/listen`."""
    parts = {"tools": capabilities.tools, "prompts": capabilities.prompts, "resources": capabilities.resources}
    return {f"{name}_list_changed": bool(part and part.list_changed) for name, part in parts.items()}
