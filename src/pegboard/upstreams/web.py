"""A server on streamable HTTP, as the SDK's transport reaches it; one answer that goes wrong is one call that does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx2
import mcp_types as types
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client

from pegboard.upstreams.lines import ENDS_BYTES, Lines, TooLong, answered

CONNECT_SECONDS = 30.0
"""To connect and to write. How long an answer may take, the call decides; a stream of news may be silent for days."""
SESSION_HEADER = "mcp-session-id"
NOT_FOUND = 404
BAD_GATEWAY = 502
NO_ANSWER = "The server closed the connection before it answered"
DATA = b"data:"
BROKE_OFF = "its answer broke off"
"""Of an answer that is JSON; the SDK finds words of its own for a stream."""


@asynccontextmanager
async def web(url: str, headers: Mapping[str, str], *, limit: int) -> AsyncIterator[TransportStreams]:
    """The streams of a session. An answer of more than ``limit`` bytes is an error for whom it answers."""
    made = await asyncio.to_thread(_Client, headers, limit)  # it reads certificates, and the first one much of its code
    async with (
        made as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=limit) as streams,
    ):
        yield streams


class _Client(httpx2.AsyncClient):
    """What is wrong with one answer is for the call that waits for it: the SDK would end every call of the session.

    A server that cannot be connected to is another matter: that does end the session.
    """

    def __init__(self, headers: Mapping[str, str], limit: int) -> None:
        """Any number of calls at once: none waits for another."""
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
        super().__init__(headers=dict(headers), timeout=httpx2.Timeout(CONNECT_SECONDS, read=None), limits=limits)
        self._limit = limit

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            response = await super().send(request, **options)
        except (httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError):
            if request.method != "POST":
                raise
            error = {"code": types.CONNECTION_CLOSED, "message": NO_ANSWER}
            body = {"jsonrpc": "2.0", "id": None, "error": error}
            return httpx2.Response(BAD_GATEWAY, json=body, request=request)
        await _say_that_the_session_ended(response)
        asked = _id_in(request.content) if request.method == "POST" and response.is_success else None
        if asked is not None and "content-encoding" not in response.headers:
            checked = CHECKED.get(response.headers.get("content-type", "").partition(";")[0].strip().lower())
            if checked is not None:
                response.stream = checked(response.stream, asked, self._limit)
        return response


async def _say_that_the_session_ended(response: httpx2.Response) -> None:
    """A 404 to a request of a session means that the server forgot it (MCP 2025-11-25, transports), whatever stands in
    the body: the SDK says so itself only where that is no JSON-RPC error, which the SDKs' own servers do send (M14).
    """
    if response.status_code != NOT_FOUND or SESSION_HEADER not in response.request.headers:
        return
    body = await response.aread()
    with suppress(ValueError, KeyError, TypeError):
        if json.loads(body)["error"]["code"] == types.METHOD_NOT_FOUND:
            return
    response.headers["content-type"] = "text/plain"


class _Unreadable(httpx2.StreamError):
    """What the SDK takes for an answer that cannot be parsed, and tells the caller of."""


class _Checked(httpx2.AsyncByteStream):
    """The body of an answer, checked on its way."""

    def __init__(self, stream: httpx2.SyncByteStream | httpx2.AsyncByteStream, asked: int | str, limit: int) -> None:
        self._stream = stream
        self._asked = asked
        self._limit = limit

    async def aclose(self) -> None:
        await self._stream.aclose()  # type: ignore[union-attr]  # that of an asynchronous client

    async def _chunks(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._stream:  # type: ignore[union-attr]
                yield chunk
        except httpx2.TransportError as error:
            raise _Unreadable(BROKE_OFF) from error

    def _is_anothers(self, head: bytes, tail: bytes) -> bool:
        came = answered(head, tail)
        return came is not None and str(came) != str(self._asked)


class _Whole(_Checked):
    """JSON: within the limit, to its end, and the answer to this very request (M23)."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        head, tail, size = b"", b"", 0
        async for chunk in self._chunks():
            head = (head + chunk[:ENDS_BYTES])[:ENDS_BYTES]
            tail = (tail + chunk[-ENDS_BYTES:])[-ENDS_BYTES:]
            size += len(chunk)
            if size > self._limit:
                raise _Unreadable(f"it is larger than the {self._limit:,} bytes that are allowed (result_limit)")
            yield chunk
        if self._is_anothers(head, tail):
            raise _Unreadable("it answers another request")


class _Events(_Checked):
    """A stream of events, without those that answer another request: the SDK would take them for the answer (M23)."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        lines = Lines(self._limit + len(DATA))
        async for chunk in self._chunks():
            kept = [line for line in lines.feed(chunk) if not self._is_left_out(line)]
            if any(isinstance(line, TooLong) for line in kept):
                raise httpx2.SSEError(f"it is larger than the {self._limit:,} bytes that are allowed (result_limit)")
            yield b"".join(line + b"\n" for line in kept if isinstance(line, bytes))

    def _is_left_out(self, line: bytes | TooLong) -> bool:
        if isinstance(line, TooLong) or not line.startswith(DATA):
            return False
        head = line[len(DATA) : len(DATA) + ENDS_BYTES].lstrip()
        return head.startswith(b"{") and self._is_anothers(head, line[-ENDS_BYTES:])


CHECKED: Mapping[str, type[_Checked]] = {"application/json": _Whole, "text/event-stream": _Events}


def _id_in(request: bytes) -> int | str | None:
    """Of our own requests, as the SDK spells them."""
    message = json.loads(request)
    found: int | str | None = message.get("id") if "method" in message else None
    return found
