"""Connections of single clients, to servers that cannot tell which client they talk to."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import anyio

from pegboard.flags import Flag
from pegboard.upstreams.upstream import Upstream

LOGGER = logging.getLogger(__name__)

MOST_CLIENTS = 32
"""Maximum connections of clients to one server at once, besides the shared one."""
IDLE_SECONDS = 600.0
"""Seconds without a call after which a client's connection ends; its next call opens a new one."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunningServer:
    """A server that runs in its own task, with the scope that cancels it and the event set once it has ended."""

    upstream: Upstream
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: asyncio.Event = field(default_factory=Flag)


class ClientConnections:
    """Connections by server and client, started by ``start``. One ends when it is idle, when its client leaves, or when
    another client needs its place."""

    def __init__(self, start: Callable[[Upstream, str], RunningServer]) -> None:
        self._start = start
        self._of: OrderedDict[tuple[str, str], RunningServer] = OrderedDict()

    def of(self, shared: Upstream, client: str) -> Upstream:
        """The client's connection to the server; the shared one if there is no room for another."""
        key = (shared.spec.name, client)
        if key not in self._of:
            if not self._room(shared.spec.name):
                LOGGER.warning("Server %s: no room for another client's connection", shared.spec.name)
                return shared
            self._of[key] = self._start(shared, client)
        self._of.move_to_end(key)
        return self._of[key].upstream

    def of_client(self, client: str) -> list[Upstream]:
        """The connections that the client has by itself."""
        return [running.upstream for (_, its), running in self._of.items() if its == client]

    def forget(self, client: str) -> None:
        """End the connections of a client that has left."""
        self._end([key for key in self._of if key[1] == client])

    def stop_idle(self) -> None:
        self._end([key for key, running in self._of.items() if running.upstream.unused_for >= IDLE_SECONDS])

    def leave(self, servers: Collection[str]) -> list[RunningServer]:
        """End all connections to these servers, and return them."""
        return self._end([key for key in self._of if key[0] in servers])

    def _room(self, server: str) -> bool:
        """Whether there is room for one more connection; if needed, the one idle for longest is ended."""
        taken = [key for key in self._of if key[0] == server]
        if len(taken) < MOST_CLIENTS:
            return True
        free = [key for key in taken if self._of[key].upstream.unused_for > 0]
        self._end(free[:1])
        return bool(free)

    def _end(self, keys: list[tuple[str, str]]) -> list[RunningServer]:
        leaving = [self._of.pop(key) for key in keys]
        for running in leaving:
            running.upstream.stop()
            running.scope.cancel()
        return leaving
