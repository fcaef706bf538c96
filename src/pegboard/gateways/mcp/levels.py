"""How much clients of the handshake era want to hear of servers' logs."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence

import mcp_types as types

from pegboard.gateways.mcp.asked_client import LEVELS
from pegboard.upstreams import Upstream

LOGGER = logging.getLogger(__name__)

MOST_SESSIONS = 10_000


class Levels:
    """By session. A server that all share says as much as the one who wants most; each hears what it asked for."""

    def __init__(self, upstreams: Callable[[], Sequence[Upstream]]) -> None:
        self._upstreams = upstreams
        self._of: OrderedDict[str, types.LoggingLevel] = OrderedDict()

    def of(self, session: str | None) -> types.LoggingLevel | None:
        return None if session is None else self._of.get(session)

    async def set(self, session: str | None, level: types.LoggingLevel) -> None:
        if session is not None:
            self._of[session] = level
            self._of.move_to_end(session)
            while len(self._of) > MOST_SESSIONS:
                self._of.popitem(last=False)
        most = min((level, *self._of.values()), key=LEVELS.index)
        for upstream in self._upstreams():
            await upstream.set_level(most)

    def forget(self, session: str) -> None:
        self._of.pop(session, None)
