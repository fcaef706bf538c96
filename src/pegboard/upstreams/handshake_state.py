"""What a server of the handshake era is told again on each new connection: the log level and the subscriptions."""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from typing import get_args

import mcp_types as types
from mcp import MCPError
from pydantic import ValidationError

from pegboard.model import JsonObject
from pegboard.upstreams.connection import Connection, mode_of

LOGGER = logging.getLogger(__name__)

LEVELS: tuple[types.LoggingLevel, ...] = get_args(types.LoggingLevel)
"""From `debug` to `emergency`."""
MOST_CLIENTS = 10_000
"""Clients whose log levels are remembered."""


class HandshakeState:
    """Of one server, over all its connections. ``seconds`` is the time in which it has to answer. A server that several
    clients share logs at the lowest level that any of them wants."""

    def __init__(self, server: str, seconds: float) -> None:
        self.levels: OrderedDict[str, types.LoggingLevel] = OrderedDict()
        """By client."""
        self.watched: Counter[str] = Counter()
        self._server = server
        self._seconds = seconds

    @property
    def level(self) -> types.LoggingLevel | None:
        return min(self.levels.values(), key=LEVELS.index, default=None)

    def wants_level(self, client: str, level: types.LoggingLevel) -> None:
        self.levels[client] = level
        self.levels.move_to_end(client)
        while len(self.levels) > MOST_CLIENTS:
            self.levels.popitem(last=False)

    async def say_level(self, connection: Connection, capabilities: JsonObject, protocol: str) -> None:
        level = self.level
        if level is None or "logging" not in capabilities or mode_of(protocol) != "legacy":
            return
        try:
            request = types.SetLevelRequest(params=types.SetLevelRequestParams(level=level))
            await connection.call(request, self._seconds, None)
        except (MCPError, ValidationError) as error:
            LOGGER.info("Server %s does not accept a log level: %s", self._server, error)

    async def repeat(self, connection: Connection, capabilities: JsonObject, protocol: str) -> None:
        """Repeat the log level and the subscriptions on a new connection."""
        await self.say_level(connection, capabilities, protocol)
        for uri in sorted(self.watched):
            try:
                await connection.watch(uri)
            except MCPError as error:
                LOGGER.warning("Server %s no longer watches %s: %s", self._server, uri, error)
