"""Streams on which a server of revision 2026-07-28 tells of its tasks (SEP-2663, notifications)."""

from __future__ import annotations

import logging
from contextvars import Context
from functools import partial

import mcp_types as types
from mcp import Client, MCPError
from pydantic import ValidationError

from pegboard.upstreams.error_text import Redactor, described
from pegboard.upstreams.raw_requests import untouched
from pegboard.upstreams.stream_tasks import StreamTasks

LOGGER = logging.getLogger(__name__)


class TaskStreams:
    """One stream for each task, on one connection. What comes on it is heard as the connection's other notifications
    are. A stream that breaks is not opened again: clients poll as well."""

    def __init__(self, server: str, redacted: Redactor) -> None:
        self._server = server
        self._redacted = redacted
        self.streams = StreamTasks()

    def add(self, client: Client, task: str) -> None:
        """Ask to hear of a task; a server of the handshake era tells without being asked. The stream may outlive the
        request that wants it, and is begun outside its context."""
        if client.session.discover_result:
            Context().run(self.streams.open, task, partial(self._listen, client, task))

    def remove(self, task: str) -> None:
        self.streams.close(task)

    async def _listen(self, client: Client, task: str) -> None:
        wanted = types.SubscriptionFilter.model_validate({"taskIds": [task]})
        params = types.SubscriptionsListenRequestParams(notifications=wanted)
        try:
            await untouched(client, types.SubscriptionsListenRequest(params=params), None)
        except (MCPError, ValidationError) as error:
            LOGGER.info("Server %s does not tell of its tasks: %s", self._server, self._redacted(described(error)))
