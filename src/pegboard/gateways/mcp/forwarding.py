"""Passes a request on to another process of ours, and its answer back, as they come."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from enum import Enum, auto
from typing import Any

import httpx2
from starlette.types import Message, Scope, Send

from pegboard.gateways.event_stream import EventLines
from pegboard.gateways.mcp.messages import Replay, header
from pegboard.gateways.mcp.peers import Peers
from pegboard.model import Replica

FORWARDED = b"x-pegboard-forwarded"
CONNECT_SECONDS = 2.0
GRACE_SECONDS = 5.0
"""Time that a process which is not known any more has to finish what it was asked."""
HOP_BY_HOP = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"host"}
)
UNKNOWN = 404
MISDIRECTED = 421
INTERNAL_ERROR = -32603
LOST = "The process that worked on this has ended. Whether the tool ran is not known: look before you call it again."


class Outcome(Enum):
    ANSWERED = auto()
    ELSEWHERE = auto()
    """The other process does not have this session; the client was sent nothing."""
    GONE = auto()
    """The other process is not there; the client was sent nothing, and the request may be made again."""


class _Gone(Exception):  # noqa: N818
    """The other process has ended while it was asked."""


class Forwarder:
    """One pool of connections to all the others. Use it within `opened`."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
        timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS)
        self._http = httpx2.AsyncClient(trust_env=False, limits=limits, timeout=timeout)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Forwarder]:
        async with self._http:
            yield self

    async def forward(
        self, to: Replica, scope: Scope, replay: Replay, send: Send, *, unless_unknown: bool = False
    ) -> Outcome:
        """Answer the client as ``to`` does. With ``unless_unknown``, an answer that it knows no such session is none.

        A client that hangs up ends the request there too.
        """
        body = await replay.body()
        asked = _request(body)
        answer = _Answer(send, asked.get("id"))
        passing = asyncio.create_task(self._pass(to, scope, body, answer, unless_unknown=unless_unknown))
        watching = [asyncio.create_task(self._gone(to)), asyncio.create_task(_hung_up(replay))]
        try:
            await asyncio.wait([passing, *watching], return_when=asyncio.FIRST_COMPLETED)
            if passing.done():
                return passing.result()
            if watching[1].done():
                return Outcome.ANSWERED
            raise _Gone
        except httpx2.ConnectError:
            return Outcome.GONE
        except httpx2.ConnectTimeout:
            return Outcome.GONE
        except (httpx2.TransportError, _Gone):
            return await _ended(asked, scope, answer)
        finally:
            for task in (passing, *watching):
                task.cancel()
            await asyncio.wait([passing, *watching])

    async def _pass(self, to: Replica, scope: Scope, body: bytes, answer: _Answer, *, unless_unknown: bool) -> Outcome:
        query = scope.get("query_string", b"").decode("latin-1")
        url = f"{to.url}{scope['path']}" + (f"?{query}" if query else "")
        headers = [(name, value) for name, value in scope["headers"] if name.lower() not in HOP_BY_HOP]
        headers.append((FORWARDED, self._peers.me.id.encode()))
        async with self._http.stream(scope["method"], url, headers=headers, content=body or None) as response:
            if response.status_code == MISDIRECTED or (unless_unknown and response.status_code == UNKNOWN):
                return Outcome.ELSEWHERE
            await answer.begin(response)
            async for chunk in response.aiter_raw():
                await answer.more(chunk)
        await answer.end()
        return Outcome.ANSWERED

    async def _gone(self, replica: Replica) -> None:
        await self._peers.until_gone(replica)
        await asyncio.sleep(GRACE_SECONDS)


class _Answer:
    """What the client has been sent."""

    def __init__(self, send: Send, request: Any) -> None:
        self._send = send
        self._request = request
        self._events = EventLines()
        self.headers: list[tuple[bytes, bytes]] | None = None
        self.is_whole = False
        """Whether what was asked is answered, although the stream may go on."""

    @property
    def is_stream(self) -> bool:
        return self.headers is not None and (header(self.headers, b"content-type") or "").startswith(
            "text/event-stream"
        )

    async def begin(self, response: httpx2.Response) -> None:
        self.headers = [(name, value) for name, value in response.headers.raw if name.lower() not in HOP_BY_HOP]
        await self._start(response.status_code, self.headers)

    async def whole(self, body: bytes) -> None:
        self.headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await self._start(200, self.headers)
        await self.more(body)
        await self.end()

    async def more(self, body: bytes) -> None:
        if self.is_stream:
            self.is_whole = self.is_whole or any(map(self._answers, self._events.feed(body)))
        await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    def _answers(self, data: bytes) -> bool:
        message = _request(data)
        return "method" not in message and message.get("id") == self._request

    async def _start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        message: Message = {"type": "http.response.start", "status": status, "headers": headers}
        await self._send(message)


async def _hung_up(replay: Replay) -> None:
    while (await replay.receive())["type"] != "http.disconnect":
        pass


async def _ended(asked: dict[str, Any], scope: Scope, answer: _Answer) -> Outcome:
    """The other process ended before it had answered: a call of a tool is not made again, everything else is."""
    if answer.headers is None and asked.get("method") != "tools/call":
        return Outcome.GONE
    error = {"jsonrpc": "2.0", "id": asked.get("id"), "error": {"code": INTERNAL_ERROR, "message": LOST}}
    if answer.headers is None:
        await answer.whole(json.dumps(error).encode())
    elif answer.is_stream:
        if scope["method"] == "POST" and not answer.is_whole:
            await answer.more(b"\r\n\r\nevent: message\r\ndata: " + json.dumps(error).encode() + b"\r\n\r\n")
        await answer.end()  # a client of a session's own stream comes again
    else:
        raise ConnectionError("The other process ended in the middle of its answer")
    return Outcome.ANSWERED


def _request(body: bytes) -> dict[str, Any]:
    with suppress(ValueError):
        message = json.loads(body)
        if isinstance(message, dict):
            return message
    return {}
