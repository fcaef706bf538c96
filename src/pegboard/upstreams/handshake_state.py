"""What a server of the handshake era is told again on each new connection: the log level and the subscriptions."""

from __future__ import annotations

import logging
from collections import Counter

import mcp_types as types
from mcp import MCPError
from pydantic import ValidationError

from pegboard.model import JsonObject
from pegboard.upstreams.client_levels import ClientLevels
from pegboard.upstreams.connection import Connection, mode_of

LOGGER = logging.getLogger(__name__)


class HandshakeState:
    """Of one server, over all its connections. ``seconds`` is the time in which it has to answer."""

    def __init__(self, server: str, seconds: float, levels: ClientLevels) -> None:
        self.watched: Counter[str] = Counter()
        self._server = server
        self._seconds = seconds
        self._levels = levels

    async def say_level(self, connection: Connection, capabilities: JsonObject, protocol: str) -> None:
        level = self._levels.lowest
        if level is None or "logging" not in capabilities or mode_of(protocol) != "legacy":
            return
        try:
            request = types.SetLevelRequest(params=types.SetLevelRequestParams(level=level))
            await connection.call(request, self._seconds, None)
        except (MCPError, ValidationError) as error:
            LOGGER.info("Server %s does not accept a log level: %s", self._server, connection.said(error))

    async def repeat(self, connection: Connection, capabilities: JsonObject, protocol: str) -> None:
        """Repeat the log level and the subscriptions on a new connection."""
        await self.say_level(connection, capabilities, protocol)
        for uri in sorted(self.watched):
            try:
                await connection.watch(uri)
            except MCPError as error:
                LOGGER.warning("Server %s no longer watches %s: %s", self._server, uri, connection.said(error))
