"""Helpers for ASGI requests: bodies that can be read again, and headers."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.types import Message, Receive

Headers = list[tuple[bytes, bytes]]


class ReplayableBody:
    """The body of a request, which can be read more than once."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._read: list[Message] = []
        self._place = 0

    async def receive(self) -> Message:
        if self._place == len(self._read):
            message = await self._receive()
            if message["type"] != "http.request":
                return message
            self._read.append(message)
        self._place += 1
        return self._read[self._place - 1]

    def again(self) -> Receive:
        """A `receive` that starts at the beginning."""
        self._place = 0
        return self.receive

    async def body(self) -> bytes:
        """The whole body."""
        self.again()
        parts = []
        while True:
            message = await self.receive()
            if message["type"] != "http.request":
                break
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                break
        return b"".join(parts)


def received(body: bytes, receive: Receive) -> Receive:
    """As ``receive``, of which this whole body was read."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return left.pop() if left else await receive()

    return again


def header(headers: Iterable[tuple[bytes, bytes]], wanted: bytes) -> str | None:
    return next((value.decode("latin-1") for name, value in headers if name.lower() == wanted), None)


def with_header(
    headers: Iterable[tuple[bytes, bytes]], name: bytes, value: str, *, only_there: bool = False
) -> Headers:
    """The headers with this one set; with ``only_there``, only if it is present."""
    every = list(headers)
    kept = [each for each in every if each[0].lower() != name]
    return every if only_there and len(kept) == len(every) else [*kept, (name, value.encode("latin-1"))]
