"""Resources that a server is asked to watch, on one connection."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

import anyio
import mcp_types as types
from mcp import Client, MCPError
from mcp.client.subscriptions import SubscriptionLost

from pegboard.upstreams.listing import untouched

LOGGER = logging.getLogger(__name__)

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 60.0
"""Seconds until a lost stream of news is opened again."""


class Subscriptions:
    """By requests in the handshake era; in the 2026 era by a stream for each resource. News come as messages."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._streams: dict[str, anyio.CancelScope] = {}
        self._tasks: anyio.abc.TaskGroup | None = None

    async def follow(self, client: Client) -> None:
        """Keep streams open. Until cancelled."""
        async with anyio.create_task_group() as self._tasks:
            await anyio.sleep_forever()

    async def add(self, client: Client, uri: str, seconds: float) -> None:
        """Raises MCPError where the server will not watch it."""
        if not client.session.discover_result:
            await untouched(client, types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri)), seconds)
        elif uri not in self._streams and self._tasks is not None:
            self._streams[uri] = scope = anyio.CancelScope()
            acknowledged = asyncio.Event()
            self._tasks.start_soon(self._listen, client, uri, scope, acknowledged)
            with anyio.move_on_after(seconds):
                await acknowledged.wait()

    async def remove(self, client: Client, uri: str, seconds: float) -> None:
        if not client.session.discover_result:
            await untouched(client, types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri=uri)), seconds)
        elif uri in self._streams:
            self._streams.pop(uri).cancel()

    async def _listen(self, client: Client, uri: str, scope: anyio.CancelScope, acknowledged: asyncio.Event) -> None:
        pause = FIRST_PAUSE
        with scope:
            while True:
                with suppress(SubscriptionLost):
                    try:
                        async with client.listen(resource_subscriptions=[uri]) as subscription:
                            acknowledged.set()
                            pause = FIRST_PAUSE
                            async for _ in subscription:
                                pass
                    except MCPError as error:
                        LOGGER.info("Server %s does not say when %s changes: %s", self._server, uri, error)
                        acknowledged.set()
                        if error.code == types.METHOD_NOT_FOUND:
                            return
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
