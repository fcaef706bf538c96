"""How a server ends: balancers are told first, models' answers under way come to their end, and then it is over."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

import uvicorn

from pegboard.gateways.asgi import Front
from pegboard.gateways.readiness import Readiness

LEAST_WAIT = 0.5
"""Seconds in which /readyz says that this process is about to end, however short `drain_wait` is."""


class Server(uvicorn.Server):
    """Says when it listens. Ends with the first signal in good order, with a second one at once."""

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
        """Seconds to ``wait`` for balancers, and that answers may then take (``timeout``). ``hang_up`` ends streams,
        ``read_again`` has the configuration read again."""
        super().__init__(config)
        self.url = url
        self._front = front
        self._listening = listening
        self._wait = wait
        self._timeout = timeout
        self._said = started
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
        """SIGTERM waits for balancers, which SIGINT, from a keyboard, need not. SIGHUP has the configuration read
        again; at a terminal it says that the terminal is gone, and ends this too."""
        loop = asyncio.get_running_loop()
        handlers: dict[int, Callable[[], None]] = {
            signal.SIGTERM: self.terminate,
            signal.SIGINT: partial(self.end, 0.0),
        }
        if sys.platform != "win32":
            handlers[signal.SIGHUP] = self.terminate if _at_a_terminal() else self._read_again
        for number, handler in handlers.items():
            with suppress(NotImplementedError):  # Windows
                loop.add_signal_handler(number, handler)
        try:
            yield
        finally:
            for number in handlers:
                with suppress(NotImplementedError):
                    loop.remove_signal_handler(number)

    def terminate(self) -> None:
        """End, and have at least a moment in which /readyz says so: whoever asks then need not take it for a crash."""
        self.end(max(self._wait, LEAST_WAIT))

    def end(self, wait: float) -> None:
        """Take requests for ``wait`` seconds still, and say that others should have them; then end."""
        if self.readiness.draining:
            self._hurry.set()
            self.force_exit = self.should_exit = True
        else:
            self.readiness.draining = True
            asyncio.get_running_loop().call_later(wait, setattr, self, "should_exit", True)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._said(self.url)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Streams of MCP have no end of their own: they are ended before anything is waited for."""
        self._hang_up()
        for listener in self.servers:
            listener.close()
        await self._models_done()
        for connection in list(self.server_state.connections) if self._front.underway or self.force_exit else ():
            connection.transport.abort()
        await super().shutdown(sockets)

    async def _models_done(self) -> None:
        """All answers have ended, or the time for that is over, or nobody wants to wait any more."""
        waiting = [asyncio.create_task(each.wait()) for each in (self._front.quiet, self._hurry)]
        await asyncio.wait(waiting, timeout=self._timeout, return_when=asyncio.FIRST_COMPLETED)
        for each in waiting:
            each.cancel()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Ours are handled outside, so that the servers behind are ended before the process is."""
        yield


def _at_a_terminal() -> bool:
    """Whether somebody sits before this process, whose terminal may be closed."""
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
