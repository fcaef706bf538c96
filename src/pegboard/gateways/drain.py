"""How a server shuts down: load balancers are told first, then model requests in progress finish."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import uvicorn

from pegboard import operating_system
from pegboard.gateways.asgi import Front
from pegboard.gateways.readiness import Readiness

LEAST_WAIT = 0.5
"""Minimum seconds during which /readyz reports the shutdown, however short `drain_wait` is."""


class DrainableServer(uvicorn.Server):
    """Reports when it listens. The first signal shuts it down gracefully, a second one at once."""

    def __init__(
        self,
        config: uvicorn.Config,
        front: Front,
        listening: socket.socket,
        *,
        url: str,
        wait: float,
        timeout: float,
        started: Callable[[str], None],
        hang_up: Callable[[], None],
        read_again: Callable[[], None] = lambda: None,
    ) -> None:
        """``wait`` and ``timeout``: seconds that balancers, and then requests in progress, have. ``hang_up`` ends
        streams and measurements in the shadow, ``read_again`` reloads the configuration."""
        super().__init__(config)
        self.url = url
        self._front = front
        self._listening = listening
        self._wait = wait
        self._timeout = timeout
        self._on_started = started
        self._hang_up = hang_up
        self._read_again = read_again
        self._hurry = asyncio.Event()

    @property
    def readiness(self) -> Readiness:
        return self._front.readiness

    async def until_end(self) -> None:
        await self.serve(sockets=[self._listening])

    @contextmanager
    def signals(self) -> Iterator[None]:
        """SIGTERM waits for balancers; SIGINT, from a keyboard, does not. SIGHUP reloads the configuration, except at a
        terminal, where it means that the terminal was closed and shuts the server down."""
        handlers: dict[int, Callable[[], None]] = {
            signal.SIGTERM: self.terminate,
            signal.SIGINT: partial(self.end, 0.0),
        }
        if (hang_up := operating_system.reload_signal()) is not None:
            handlers[hang_up] = self.terminate if _at_a_terminal() else self._read_again
        with operating_system.signal_handlers(handlers):
            yield

    def terminate(self) -> None:
        """Shut down, reporting it in /readyz for a minimum time, so that balancers do not mistake it for a crash."""
        self.end(max(self._wait, LEAST_WAIT))

    def end(self, wait: float) -> None:
        """Accept requests for ``wait`` more seconds, while reporting that this process is not ready; then shut down."""
        if self.readiness.draining:
            self._hurry.set()
            self.force_exit = self.should_exit = True
        else:
            self.readiness.draining = True
            asyncio.get_running_loop().call_later(wait, setattr, self, "should_exit", True)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_started(self.url)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """MCP streams do not end by themselves: they are closed before anything is waited for."""
        self._hang_up()
        for listener in self.servers:
            listener.close()
        await self._models_done()
        for connection in list(self.server_state.connections) if self._front.underway or self.force_exit else ():
            connection.transport.abort()
        await super().shutdown(sockets)

    async def _models_done(self) -> None:
        """Wait until all model requests are finished, the time is over, or a second signal arrives."""
        waiting = [asyncio.create_task(each.wait()) for each in (self._front.quiet, self._hurry)]
        await asyncio.wait(waiting, timeout=self._timeout, return_when=asyncio.FIRST_COMPLETED)
        for each in waiting:
            each.cancel()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Replaces uvicorn's handlers: `signals` handles signals, so that upstream servers end before the process
        does."""
        yield


def _at_a_terminal() -> bool:
    """Whether this process is attached to a terminal."""
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
