"""One session of a server: opened, listed, called, and at some time over."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import anyio
import mcp_types as types
from mcp import Client, MCPError
from mcp.client._transport import TransportStreams
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.dispatcher import ProgressFnT
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError

from pegboard.errors import PegboardError
from pegboard.seams import Listing
from pegboard.server_spec import ServerSpec
from pegboard.upstreams.explained import Redactor, described
from pegboard.upstreams.listing import read_listing, untouched
from pegboard.upstreams.transport import StderrTail, Watched, open_transport

LOGGER = logging.getLogger(__name__)

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 60.0
RELIST_PAUSE = 0.5
LAST_ANSWERS = 1.0
"""Seconds for other calls under way to get their own answers when one was told that the session is gone."""
QUOTED_CHARACTERS = 80
WORDS_CHARACTERS = 1000


class NoAnswer(Exception):  # noqa: N818
    """A server did not introduce itself, or list its tools, in its time."""


def mode_of(protocol: str) -> str:
    """How the SDK is to greet a server that spoke this revision last; empty where that is not known (M19).

    A server of the handshake era is not asked again whether it is one. `server/discover` is no such question to a
    server of the 2026 era: it is how that introduces itself.
    """
    return "legacy" if protocol in HANDSHAKE_PROTOCOL_VERSIONS else "auto"


class Connection:
    """A session with a server whose spec has its variables put in.

    ``patience`` is how many seconds it may take until its tools are listed.
    """

    def __init__(
        self, spec: ServerSpec, environment: Mapping[str, str], redacted: Redactor, *, mode: str, patience: float
    ) -> None:
        self.agreed = False
        """Whether it was we who ended it."""
        self.opened = False
        self._spec = spec
        self._environment = environment
        self._redacted = redacted
        self._patience = patience
        self._stderr = StderrTail()
        self._watched: Watched | None = None
        self._relist = asyncio.Event()
        self._calls = 0
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._client = Client(
            self._transport(),
            mode=mode,
            cache=None,
            message_handler=self._on_message,
            client_info=types.Implementation(name="pegboard", version=version("pegboard")),
        )

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Listing]:
        """What the server says of itself, first. Raises NoAnswer, and whatever a broken server provokes."""
        with anyio.CancelScope(deadline=anyio.current_time() + self._patience) as limit:
            async with self._client:
                listing = await read_listing(self._client, self._patience)
                limit.deadline = math.inf
                self.opened = True
                yield listing
        if limit.cancelled_caught:
            raise NoAnswer

    async def serve(self, listed: Callable[[Listing], Awaitable[None]]) -> None:
        """Until the connection ends; ``listed`` is awaited with a new listing when the tools changed."""
        if self._watched is None:
            return
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._relist_on_change, listed)
            if self._client.session.discover_result:
                tasks.start_soon(self._listen)
            await self._watched.ended.wait()
            with anyio.move_on_after(LAST_ANSWERS if self.agreed else 0):
                await self._quiet.wait()
            tasks.cancel_scope.cancel()

    async def call(
        self, request: types.CallToolRequest, seconds: float, progress: ProgressFnT | None
    ) -> dict[str, Any]:
        """The result, untouched. Raises MCPError, and ValidationError for what is no result."""
        self._calls += 1
        self._quiet.clear()
        try:
            return await untouched(self._client, request, seconds, progress)
        finally:
            self._calls -= 1
            if not self._calls:
                self._quiet.set()

    def end(self, *, agreed: bool) -> None:
        """Let `serve` return. ``agreed``: nothing is wrong with the server."""
        self.agreed = self.agreed or agreed
        if self._watched is not None:
            self._watched.ended.set()

    def because(self, what: str) -> str:
        """What happened, with the last words of the server's stderr, and without its secrets."""
        garbage = self._redacted(self._watched.garbage if self._watched else "")[:QUOTED_CHARACTERS]
        said = f" It printed to stdout what is not JSON-RPC: {garbage}." if garbage else ""
        words = self._redacted(self._stderr.text)[-WORDS_CHARACTERS:]
        last = f" Its last words: {words}" if words else ""
        return f"{self._redacted(what)}{said}{last}"

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[TransportStreams]:
        async with open_transport(self._spec, self._environment, self._stderr) as (read, write):
            self._watched = Watched(read)
            yield self._watched, write

    async def _relist_on_change(self, listed: Callable[[Listing], Awaitable[None]]) -> None:
        """A listing that fails leaves the old tools; a storm of changes is a listing now and then (M18)."""
        while await self._relist.wait():
            self._relist.clear()
            try:
                await listed(await read_listing(self._client, self._patience))
            except (MCPError, ValidationError, PegboardError) as error:
                why = self._redacted(described(error))
                LOGGER.warning("Server %s could not be listed again: %s", self._spec.name, why)
            await asyncio.sleep(RELIST_PAUSE)

    async def _listen(self) -> None:
        """A server of the 2026 era announces changes on a stream of its own; a lost stream is opened again."""
        capabilities = self._client.server_capabilities.tools
        if capabilities is None or not capabilities.list_changed:
            return
        pause = FIRST_PAUSE
        while True:
            try:
                async with self._client.listen(tools_list_changed=True) as subscription:
                    pause = FIRST_PAUSE
                    async for _ in subscription:
                        self._relist.set()
            except (MCPError, SubscriptionLost) as error:
                if isinstance(error, MCPError) and error.code == types.METHOD_NOT_FOUND:
                    return
                LOGGER.info("Server %s ended its announcements: %s", self._spec.name, self._redacted(str(error)))
            self._relist.set()
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _on_message(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._relist.set()
