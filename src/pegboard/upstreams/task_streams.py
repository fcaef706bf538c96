"""Streams on which a server of revision 2026-07-28 tells of its tasks (SEP-2663, notifications)."""

from __future__ import annotations

import logging

import anyio
import mcp_types as types
from anyio.abc import TaskGroup
from mcp import Client, MCPError
from pydantic import ValidationError

from pegboard.upstreams.raw_requests import untouched

LOGGER = logging.getLogger(__name__)


class TaskStreams:
    """One stream for each task, on one connection. What comes on it is heard as the connection's other notifications
    are. A stream that breaks is not opened again: clients poll as well."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._streams: dict[str, anyio.CancelScope] = {}
        self.tasks: TaskGroup | None = None
        """In which streams are open; None before the connection is, and after it."""

    def add(self, client: Client, task: str) -> None:
        """Ask to hear of a task; a server of the handshake era tells without being asked."""
        if client.session.discover_result and task not in self._streams and self.tasks is not None:
            self._streams[task] = scope = anyio.CancelScope()
            self.tasks.start_soon(self._listen, client, task, scope)

    def remove(self, task: str) -> None:
        if task in self._streams:
            self._streams.pop(task).cancel()

    async def _listen(self, client: Client, task: str, scope: anyio.CancelScope) -> None:
        wanted = types.SubscriptionFilter.model_validate({"taskIds": [task]})
        params = types.SubscriptionsListenRequestParams(notifications=wanted)
        with scope:
            try:
                await untouched(client, types.SubscriptionsListenRequest(params=params), None)
            except (MCPError, ValidationError) as error:
                LOGGER.info("Server %s does not tell of its tasks: %s", self._server, error)
        self._streams.pop(task, None)
