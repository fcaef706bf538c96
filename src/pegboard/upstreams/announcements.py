"""A server says that its tools changed: they are listed again, and a storm of news is a listing now and then (M18)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import anyio
import mcp_types as types
from mcp import Client, MCPError
from mcp.client.subscriptions import SubscriptionLost
from pydantic import ValidationError

from pegboard.errors import PegboardError
from pegboard.seams import Listing
from pegboard.upstreams.explained import Redactor, described
from pegboard.upstreams.limits import Limits
from pegboard.upstreams.listing import read_listing

LOGGER = logging.getLogger(__name__)

RELIST_PAUSE = 0.5
"""Seconds from one listing to the next, at least."""
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 60.0
"""Seconds until a lost stream of news is opened again."""


class Announcements:
    """Of one connection. In the handshake era news come as messages, in the 2026 era on a stream that is asked for."""

    def __init__(self, server: str, redacted: Redactor, limits: Limits) -> None:
        self._server = server
        self._redacted = redacted
        self._limits = limits
        self._news = asyncio.Event()

    async def on_message(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._news.set()

    async def follow(self, client: Client, seconds: float, listed: Callable[[Listing], Awaitable[None]]) -> None:
        """Await ``listed`` with every new listing, whose pages may take ``seconds`` each. Until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._list_on_news, client, seconds, listed)
            if client.session.discover_result:
                tasks.start_soon(self._listen, client)

    async def _list_on_news(self, client: Client, seconds: float, listed: Callable[[Listing], Awaitable[None]]) -> None:
        """A listing that fails leaves the old tools."""
        while await self._news.wait():
            self._news.clear()
            try:
                await listed(await read_listing(self._server, client, seconds, self._limits))
            except (MCPError, ValidationError, PegboardError) as error:
                why = self._redacted(described(error))
                LOGGER.warning("Server %s could not be listed again: %s", self._server, why)
            await asyncio.sleep(RELIST_PAUSE)

    async def _listen(self, client: Client) -> None:
        """What was missed while there was no stream, at the beginning too, is found by listing."""
        wanted = changing(client.server_capabilities)
        if not any(wanted.values()):
            return
        pause = FIRST_PAUSE
        while True:
            try:
                async with client.listen(**wanted) as subscription:  # type: ignore[arg-type]
                    pause = FIRST_PAUSE
                    self._news.set()
                    async for _ in subscription:
                        pass
            except (MCPError, SubscriptionLost) as error:
                if isinstance(error, MCPError) and error.code == types.METHOD_NOT_FOUND:
                    return
                LOGGER.info("Server %s ended its announcements: %s", self._server, self._redacted(str(error)))
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)


def changing(capabilities: types.ServerCapabilities) -> dict[str, bool]:
    """Which of its lists a server says to announce changes of, as `subscriptions/listen` asks for them."""
    parts = {"tools": capabilities.tools, "prompts": capabilities.prompts, "resources": capabilities.resources}
    return {f"{name}_list_changed": bool(part and part.list_changed) for name, part in parts.items()}
