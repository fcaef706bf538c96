"""Limits for connections: how many there may be, and how long and how large the head of a request may be.

uvicorn has no such limits. A connection that sends an incomplete head, slowly or endlessly, would stay open forever,
and a few hundred of them would use up all file descriptors.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.h11_impl import H11Protocol

LOGGER = logging.getLogger(__name__)
MOST_HEAD = 256 * 1024
"""Bytes of a request's head, including what follows it before the request is parsed."""
TOO_MANY = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n"
TOO_LATE = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"

if TYPE_CHECKING:
    Http = H11Protocol
else:
    try:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as Http
    except ImportError:  # Windows
        Http = H11Protocol


@dataclass(slots=True)
class Connections:
    """At most ``most`` connections at once; ``head_seconds`` limits the time for the head of a request.

    Beyond that, the connection that has been idle longest is closed for the new one.
    """

    most: int
    head_seconds: float
    _open: dict[Guarded, None] = field(default_factory=dict)
    _warned: bool = False

    def protocol(self) -> type[asyncio.Protocol]:
        """uvicorn's protocol class for these connections."""
        return type("Protocol", (Guarded,), {"ours": self})

    def opened(self, connection: Guarded) -> bool:
        """Register a connection. Returns whether there is room for it."""
        if len(self._open) >= self.most:
            if not self._warned:
                LOGGER.warning("There are %d connections (most_connections): idle ones are being closed.", self.most)
                self._warned = True
            idle = next((each for each in self._open if not each.is_under_way), None)
            if idle is None:
                return False
            self.closed(idle)
            idle.transport.abort()
        self._open[connection] = None
        return True

    def closed(self, connection: Guarded) -> None:
        self._open.pop(connection, None)
        if len(self._open) < self.most // 2:
            self._warned = False

    def rested(self, connection: Guarded) -> None:
        """The connection has finished a request: it becomes the last idle one to be closed."""
        if connection in self._open:
            self._open[connection] = self._open.pop(connection)


class Guarded(Http):
    """One connection, with limits on the heads of its requests."""

    ours: Connections

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._head = 0
        self._late: asyncio.TimerHandle | None = None
        if self.ours.opened(self):
            self._await_head()
        else:
            self._refuse(TOO_MANY)

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_is_there()
        self.ours.closed(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if not self.is_under_way:
            self._head += len(data)
            self._await_head()
        super().data_received(data)
        if self.is_under_way:
            self._head_is_there()
        elif self._head > MOST_HEAD:
            self._refuse(TOO_LARGE)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self.ours.rested(self)

    @property
    def is_under_way(self) -> bool:
        """Whether a request is in progress: its head has arrived, and its answer is not finished."""
        cycle: Any = self.cycle
        return cycle is not None and not cycle.response_complete

    def _await_head(self) -> None:
        if self._late is None:
            self._late = self.loop.call_later(self.ours.head_seconds, self._refuse, TOO_LATE)

    def _head_is_there(self) -> None:
        self._head = 0
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _refuse(self, answer: bytes) -> None:
        self._head_is_there()
        if not self.transport.is_closing():
            self.transport.write(answer)
            self.transport.close()
