"""Time for the body of a request: whoever sends it byte by byte holds what it takes only so long."""

from __future__ import annotations

import asyncio

from starlette.types import Message, Receive, Send

SLOWEST = 16 * 1024
"""Bytes a second that a body has to come with, once its first seconds are over."""
ENDED: Message = {"type": "http.disconnect"}
REFUSED = b'{"error":"body_too_slow","message":"The body of the request did not come in time."}'


class TimedBody:
    """A request's `receive` and `send`: 408 where its body takes more than ``seconds``, and longer for a large one.

    What its application sends after that goes nowhere, and it is told that the client has gone.
    """

    def __init__(self, receive: Receive, send: Send, seconds: float) -> None:
        self._receive = receive
        self._send = send
        self._seconds = seconds
        self._began = asyncio.get_running_loop().time()
        self._size = 0
        self._whole = False
        self._begun = False
        self._late = False

    async def receive(self) -> Message:
        if self._late:
            return ENDED
        if self._whole:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._began + self._seconds + self._size / SLOWEST):
                message = await self._receive()
        except TimeoutError:
            await self._refuse()
            return ENDED
        self._size += len(message.get("body", b""))
        self._whole = message["type"] != "http.request" or not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        if self._late:
            return
        self._begun = True
        await self._send(message)

    async def _refuse(self) -> None:
        self._late = True
        if self._begun:
            return
        headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
        length = (b"content-length", str(len(REFUSED)).encode())
        await self._send({"type": "http.response.start", "status": 408, "headers": [*headers, length]})
        await self._send({"type": "http.response.body", "body": REFUSED})
