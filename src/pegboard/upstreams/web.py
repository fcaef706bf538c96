"""A server on streamable HTTP, or on HTTP with SSE, which that replaced, as the SDK's transports reach them; one answer
that goes wrong is one call that does."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx2
import mcp_types as types
from mcp.client._transport import TransportStreams
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from pegboard.errors import PegboardError
from pegboard.inflate import WINDOWS, inflated
from pegboard.upstreams.limits import Limits
from pegboard.upstreams.lines import ENDS_BYTES, Lines, TooLong, answered

CONNECT_SECONDS = 30.0
"""To connect and to write. How long an answer may take, the call decides; a stream of news may be silent for days."""
SESSION_HEADER = "mcp-session-id"
UNAUTHORIZED = 401
NOT_FOUND = 404
BAD_GATEWAY = 502
NO_ANSWER = "The server closed the connection before it answered"
SIGN_IN = "It needs signing in (OAuth), which Pegboard cannot do yet"
REFUSED = "It refuses the token or key of its entry (HTTP 401)"
"""Why a server answers 401: to whom showed it nothing, and to whom showed it something."""
DATA = b"data:"
EVENTS = "text/event-stream"
OPTIONS = "result_limit, list_bytes"
BROKE_OFF = "its answer broke off"
"""Of an answer that is JSON; the SDK finds words of its own for a stream."""


@asynccontextmanager
async def web(
    url: str, headers: Mapping[str, str], *, limits: Limits, credentials: bool = False
) -> AsyncIterator[TransportStreams]:
    """The streams of a session. An answer beyond ``limits`` is an error for whom it answers.

    ``credentials``: a token or key stands in the headers or the URL.
    """
    unauthorized = REFUSED if credentials else SIGN_IN
    made = await asyncio.to_thread(_Client, headers, limits, unauthorized)  # it reads certificates, the first much code
    async with (
        made as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=limits.result) as streams,
    ):
        yield streams


@asynccontextmanager
async def event_stream(
    url: str, headers: Mapping[str, str], *, limits: Limits, credentials: bool = False
) -> AsyncIterator[TransportStreams]:
    """The same of a server on HTTP with SSE (MCP 2024-11-05, transports), whose answers all come on one stream.

    Raises PegboardError where it wants to be signed in to.
    """
    unauthorized = REFUSED if credentials else SIGN_IN

    def client(
        headers: dict[str, str] | None = None, timeout: httpx2.Timeout | None = None, auth: httpx2.Auth | None = None
    ) -> httpx2.AsyncClient:
        """With our own times: a stream of answers may be silent for days."""
        return _Client(headers or {}, limits, unauthorized, one_stream=True)

    try:
        async with sse_client(url, dict(headers), httpx_client_factory=client) as streams:
            yield streams
    except httpx2.HTTPStatusError as error:
        if error.response.status_code != UNAUTHORIZED:
            raise
        raise PegboardError(f"{unauthorized}.") from error


class _Client(httpx2.AsyncClient):
    """What is wrong with one answer is for the call that waits for it: the SDK would end every call of the session.

    A server that cannot be connected to is another matter: that does end the session.
    """

    def __init__(
        self, headers: Mapping[str, str], limits: Limits, unauthorized: str = SIGN_IN, *, one_stream: bool = False
    ) -> None:
        """Any number of calls at once: none waits for another. ``one_stream``: every answer comes on that of a GET."""
        pool = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
        super().__init__(
            headers={"accept-encoding": ", ".join(WINDOWS)} | dict(headers),
            timeout=httpx2.Timeout(CONNECT_SECONDS, read=None),
            limits=pool,
        )
        self._limits = limits
        self._unauthorized = unauthorized
        self._one_stream = one_stream

    async def send(self, request: httpx2.Request, *, stream: bool = False, **options: Any) -> httpx2.Response:
        try:
            response = await super().send(request, stream=True, **options)
        except (httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError):
            if request.method != "POST":
                raise
            return _error(BAD_GATEWAY, types.CONNECTION_CLOSED, NO_ANSWER, request)
        try:
            if response.status_code == UNAUTHORIZED and request.method == "POST":
                await response.aclose()
                return _error(UNAUTHORIZED, types.INVALID_REQUEST, self._unauthorized, request)
            self._bound(response)
            await _say_that_the_session_ended(response)
            if not stream:
                await response.aread()
        except BaseException:
            await response.aclose()
            raise
        return response

    def _bound(self, response: httpx2.Response) -> None:
        """Limits hold for what a body is once its coding is undone, which is therefore done here, piece by piece."""
        _undo_coding(response)
        request, kind = response.request, _kind(response)
        method, asked = _asked_in(request.content) if request.method == "POST" and response.is_success else ("", None)
        limit = self._limits.of(method)
        checked = CHECKED.get(kind)
        if self._one_stream and request.method == "GET":
            response.stream = _OneStream(response.stream, "", limit)
        elif asked is not None and checked is not None:
            response.stream = checked(response.stream, asked, limit)
        elif kind != EVENTS:  # whoever reads events has a limit for each
            response.stream = _Cut(response.stream, limit)


def _kind(response: httpx2.Response) -> str:
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def _undo_coding(response: httpx2.Response) -> None:
    """What has a coding that nobody asked for stays as it is, and is no answer that can be read."""
    codings = [each.strip().lower() for each in response.headers.get("content-encoding", "").split(",")]
    for coding in reversed(codings):
        if coding in WINDOWS:
            response.stream = _Inflated(response.stream, coding)
    if codings != [""]:
        for name in ("content-encoding", "content-length"):
            response.headers.pop(name, None)


def _error(status: int, code: int, message: str, request: httpx2.Request) -> httpx2.Response:
    """An answer that the SDK hands to whoever waits for this request's."""
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    return httpx2.Response(status, json=body, request=request)


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


class _Stream(httpx2.AsyncByteStream):
    """The body of an answer, by way of another stream of it."""

    def __init__(self, stream: httpx2.SyncByteStream | httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def aclose(self) -> None:
        await self._stream.aclose()  # type: ignore[union-attr]  # that of an asynchronous client


class _Inflated(_Stream):
    """Without its content coding."""

    def __init__(self, stream: httpx2.SyncByteStream | httpx2.AsyncByteStream, coding: str) -> None:
        super().__init__(stream)
        self._coding = coding

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in inflated(self._stream, self._coding):  # type: ignore[arg-type]
                yield piece
        except zlib.error as error:
            raise _Unreadable("it is not what its content coding says") from error


class _Cut(_Stream):
    """Of what is no answer to a call: no more than so many bytes."""

    def __init__(self, stream: httpx2.SyncByteStream | httpx2.AsyncByteStream, limit: int) -> None:
        super().__init__(stream)
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._limit
        async for chunk in self._stream:  # type: ignore[union-attr]
            yield chunk[:left]
            left -= len(chunk)
            if left <= 0:
                return


class _Checked(_Stream):
    """The body of an answer, checked on its way."""

    def __init__(self, stream: httpx2.SyncByteStream | httpx2.AsyncByteStream, asked: int | str, limit: int) -> None:
        super().__init__(stream)
        self._asked = asked
        self._limit = limit

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
                raise _Unreadable(f"it is larger than the {self._limit:,} bytes that are allowed ({OPTIONS})")
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
                raise httpx2.SSEError(f"it is larger than the {self._limit:,} bytes that are allowed ({OPTIONS})")
            yield b"".join(line + b"\n" for line in kept if isinstance(line, bytes))

    def _is_left_out(self, line: bytes | TooLong) -> bool:
        if isinstance(line, TooLong) or not line.startswith(DATA):
            return False
        head = line[len(DATA) : len(DATA) + ENDS_BYTES].lstrip()
        return head.startswith(b"{") and self._is_anothers(head, line[-ENDS_BYTES:])


class _OneStream(_Events):
    """The stream of all answers of a session: nothing is left out, and no event is larger than the limit."""

    def _is_left_out(self, line: bytes | TooLong) -> bool:
        return False


CHECKED: Mapping[str, type[_Checked]] = {"application/json": _Whole, EVENTS: _Events}


def _asked_in(request: bytes) -> tuple[str, int | str | None]:
    """Method and id of our own requests, as the SDK spells them."""
    message = json.loads(request)
    method = message.get("method", "")
    return method, message.get("id") if method else None
