"""Connections of a client's own, to servers that talk to whoever uses them and do not say whom they mean."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Collection

from pegboard.upstreams.running import Running
from pegboard.upstreams.upstream import Upstream

LOGGER = logging.getLogger(__name__)

MOST_CLIENTS = 32
"""Connections to one server at once, beside the one that all share."""
IDLE_SECONDS = 600.0
"""Without a call, after which a client's own connection ends; its next call opens another."""


class Apart:
    """By server and client. ``start`` makes a server's connection run; it ends where it is idle, its client has left,
    or others need the place.
    """

    def __init__(self, start: Callable[[Upstream], Running]) -> None:
        self._start = start
        self._of: OrderedDict[tuple[str, str], Running] = OrderedDict()

    def of(self, shared: Upstream, client: str) -> Upstream:
        """The client's connection to the server; the shared one where there is no room for another."""
        key = (shared.spec.name, client)
        if key not in self._of:
            if not self._room(shared.spec.name):
                LOGGER.warning("Server %s: no room for one more client's own connection", shared.spec.name)
                return shared
            self._of[key] = self._start(shared)
        self._of.move_to_end(key)
        return self._of[key].upstream

    def forget(self, client: str) -> None:
        """It has left."""
        self._end([key for key in self._of if key[1] == client])

    def stop_idle(self) -> None:
        self._end([key for key, running in self._of.items() if running.upstream.unused_for >= IDLE_SECONDS])

    def leave(self, servers: Collection[str]) -> list[Running]:
        """End all connections to these servers; what is ending."""
        return self._end([key for key in self._of if key[0] in servers])

    def _room(self, server: str) -> bool:
        """Whether there is a place, which the client that has called nothing for longest may leave for it."""
        taken = [key for key in self._of if key[0] == server]
        if len(taken) < MOST_CLIENTS:
            return True
        free = [key for key in taken if self._of[key].upstream.unused_for > 0]
        self._end(free[:1])
        return bool(free)

    def _end(self, keys: list[tuple[str, str]]) -> list[Running]:
        leaving = [self._of.pop(key) for key in keys]
        for running in leaving:
            running.upstream.stop()
            running.scope.cancel()
        return leaving
