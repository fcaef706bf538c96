"""The log levels that clients of the handshake era have asked for."""

from __future__ import annotations

from collections import OrderedDict
from typing import get_args

import mcp_types as types

LEVELS: tuple[types.LoggingLevel, ...] = get_args(types.LoggingLevel)
"""From `debug` to `emergency`."""
MOST_CLIENTS = 10_000
"""Clients whose log levels are remembered."""


class ClientLevels:
    """The log levels that clients want of all servers, also of those that are added later. A server that several
    clients share logs at the lowest of them."""

    def __init__(self) -> None:
        self._of: OrderedDict[str, types.LoggingLevel] = OrderedDict()

    @property
    def lowest(self) -> types.LoggingLevel | None:
        return min(self._of.values(), key=LEVELS.index, default=None)

    def put(self, client: str, level: types.LoggingLevel) -> None:
        self._of[client] = level
        self._of.move_to_end(client)
        while len(self._of) > MOST_CLIENTS:
            self._of.popitem(last=False)

    def forget(self, client: str) -> None:
        """The client has left."""
        self._of.pop(client, None)

    def alone(self, client: str) -> ClientLevels:
        """What this client wants, whatever others do."""
        return OneClientLevels(self._of, client)


class OneClientLevels(ClientLevels):
    """For a connection that a client has by itself."""

    def __init__(self, of: OrderedDict[str, types.LoggingLevel], client: str) -> None:
        self._of = of
        self._client = client

    @property
    def lowest(self) -> types.LoggingLevel | None:
        return self._of.get(self._client)
