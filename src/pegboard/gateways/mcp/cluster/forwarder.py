"""Forwards a request to another Pegboard process and streams its answer back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from enum import Enum, auto
from http.cookiejar import DefaultCookiePolicy
from typing import Any

import httpx2
from starlette.types import Message, Scope, Send

from pegboard.gateways.event_stream import EventLines
from pegboard.gateways.mcp.cluster.http_messages import ReplayableBody, header
from pegboard.gateways.mcp.cluster.peers import Peers
from pegboard.model import Replica

FORWARDED = b"x-pegboard-forwarded"
CONNECT_SECONDS = 2.0
GRACE_SECONDS = 5.0
"""Seconds that a process that is no longer registered has to finish its requests."""
HOP_BY_HOP = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"host"}
)
UNKNOWN = 404
MISDIRECTED = 421
INTERNAL_ERROR = -32603
LOST = "The process that handled this call has ended. Whether the tool ran is unknown: check before you call it again."


class ForwardOutcome(Enum):
    ANSWERED = auto()
    ELSEWHERE = auto()
    """The other process does not own this session; nothing was sent to the client."""
    GONE = auto()
    """The other process is gone; nothing was sent to the client, and the request may be repeated."""


class _Gone(Exception):  # noqa: N818
    """The other process ended during the request."""


class Forwarder:
    """One connection pool for all other processes. Use it within `opened`."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
        timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS)
        self._http = httpx2.AsyncClient(trust_env=False, limits=limits, timeout=timeout)
        self._http.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=()))  # each browser has its own

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Forwarder]:
        async with self._http:
            yield self

    async def forward(
        self,
        to: Replica,
        scope: Scope,
        replay: ReplayableBody,
        send: Send,
        *,
        unless_unknown: bool = False,
        seconds: float | None = None,
    ) -> ForwardOutcome:
        """Relay the answer of ``to``. With ``unless_unknown``, an answer that the session is unknown is not relayed. A
        process whose answer does not begin within ``seconds`` counts as gone.

        If the client disconnects, the request ends at the other process too.
        """
        body = await replay.body()
        asked = _request(body)
        answer = _Answer(send, asked.get("id"))
        passing = asyncio.create_task(
            self._pass(to, scope, body, answer, unless_unknown=unless_unknown, seconds=seconds)
        )
        watching = [asyncio.create_task(self._gone(to)), asyncio.create_task(_hung_up(replay))]
        try:
            await asyncio.wait([passing, *watching], return_when=asyncio.FIRST_COMPLETED)
            if passing.done():
                return passing.result()
            if watching[1].done():
                return ForwardOutcome.ANSWERED
            raise _Gone
        except httpx2.ConnectError:
            return ForwardOutcome.GONE
        except httpx2.ConnectTimeout:
            return ForwardOutcome.GONE
        except (httpx2.TransportError, TimeoutError, _Gone):
            return await _ended(asked, scope, answer)
        finally:
            for task in (passing, *watching):
                task.cancel()
            await asyncio.wait([passing, *watching])

    async def _pass(
        self,
        to: Replica,
        scope: Scope,
        body: bytes,
        answer: _Answer,
        *,
        unless_unknown: bool,
        seconds: float | None,
    ) -> ForwardOutcome:
        query = scope.get("query_string", b"").decode("latin-1")
        url = f"{to.url}{scope['path']}" + (f"?{query}" if query else "")
        headers = [(name, value) for name, value in scope["headers"] if name.lower() not in HOP_BY_HOP]
        headers.append((FORWARDED, self._peers.me.id.encode()))
        async with (
            asyncio.timeout(seconds) as limit,
            self._http.stream(scope["method"], url, headers=headers, content=body or None) as response,
        ):
            limit.reschedule(None)
            if response.status_code == MISDIRECTED or (unless_unknown and response.status_code == UNKNOWN):
                return ForwardOutcome.ELSEWHERE
            await answer.begin(response)
            async for chunk in response.aiter_raw():
                await answer.more(chunk)
        await answer.end()
        return ForwardOutcome.ANSWERED

    async def _gone(self, replica: Replica) -> None:
        await self._peers.until_gone(replica)
        await asyncio.sleep(GRACE_SECONDS)


class _Answer:
    """What has been sent to the client."""

    def __init__(self, send: Send, request: Any) -> None:
        self._send = send
        self._request = request
        self._events = EventLines()
        self.headers: list[tuple[bytes, bytes]] | None = None
        self.is_whole = False
        """Whether the request has been answered, although the stream may continue."""

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


async def _hung_up(replay: ReplayableBody) -> None:
    while (await replay.receive())["type"] != "http.disconnect":
        pass


async def _ended(asked: dict[str, Any], scope: Scope, answer: _Answer) -> ForwardOutcome:
    """The other process ended before it answered: a tool call is not repeated, everything else is."""
    if answer.headers is None and asked.get("method") != "tools/call":
        return ForwardOutcome.GONE
    error = {"jsonrpc": "2.0", "id": asked.get("id"), "error": {"code": INTERNAL_ERROR, "message": LOST}}
    if answer.headers is None:
        await answer.whole(json.dumps(error).encode())
    elif answer.is_stream:
        if scope["method"] == "POST" and not answer.is_whole:
            await answer.more(b"\r\n\r\nevent: message\r\ndata: " + json.dumps(error).encode() + b"\r\n\r\n")
        await answer.end()  # the client reopens its session's own stream
    else:
        raise ConnectionError("The other process ended in the middle of its answer")
    return ForwardOutcome.ANSWERED


def _request(body: bytes) -> dict[str, Any]:
    with suppress(ValueError):
        message = json.loads(body)
        if isinstance(message, dict):
            return message
    return {}
