"""The clients that are connected: what servers ask outside any request goes to the only one, where there is one."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio
import mcp_types as types
from mcp import MCPError
from pydantic import ValidationError

LOGGER = logging.getLogger(__name__)

ROOTS_SECONDS = 10.0
"""For a client to say its roots: one that has no stream open for questions never does."""

AskRoots = Callable[[], Awaitable[types.ListRootsResult]]


class Present:
    """By the names of their sessions. ``None`` stands for a client that has no roots."""

    def __init__(self) -> None:
        self._clients: dict[str, AskRoots | None] = {}

    def join(self, client: str, ask: AskRoots | None) -> None:
        self._clients[client] = ask

    def leave(self, client: str) -> bool:
        """Whether it was there."""
        return self._clients.pop(client, self) is not self

    async def roots(self) -> types.ListRootsResult:
        """Of the only client. Of several, none: one client's folders are no other's."""
        asks = list(self._clients.values())
        if len(asks) == 1 and asks[0] is not None:
            try:
                with anyio.fail_after(ROOTS_SECONDS):
                    return await asks[0]()
            except (MCPError, ValidationError, TimeoutError) as error:
                LOGGER.info("The client did not say its roots: %s", str(error) or "no answer")
        return types.ListRootsResult(roots=[])
