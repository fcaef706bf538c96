"""Transports over streamable HTTP and HTTP with SSE, on top of the SDK's. A bad answer fails only the call it
answers."""

from __future__ import annotations

import asyncio
import json
import logging
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from typing import Any

import anyio
import httpx2
import mcp_types as types
from mcp.client._transport import TransportStreams
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from pegboard.errors import PegboardError
from pegboard.inflate import WINDOWS, inflated
from pegboard.lone_surrogates import readable
from pegboard.terminal import printable
from pegboard.upstreams.http_pools import HttpPools
from pegboard.upstreams.limits import LIST_METHOD, UpstreamLimits
from pegboard.upstreams.line_reader import ENDS_BYTES, LineReader, TooLong, answered
from pegboard.upstreams.list_answers import ListRequests, ListTooLarge, cut
from pegboard.upstreams.oauth.challenges import FORBIDDEN, UNAUTHORIZED, TokenNotRenewed, wanted_scopes
from pegboard.upstreams.tls import trusted

logger = logging.getLogger(__name__)

CONNECT_SECONDS = 30.0
"""Time limit for connecting and writing. Calls limit their own answers; a notification stream may be silent for
days."""
IDLE_SECONDS = 3.0
"""How long an unused connection is kept. Servers on uvicorn (FastMCP, the SDK's) and Node close one after 5 s, unless
told otherwise, and a call that is sent just then is lost."""
END_SECONDS = 5.0
"""Time for a server to answer that a session ends: nobody waits for the answer, but the connection's end does."""
SESSION_HEADER = "mcp-session-id"
NOT_FOUND = 404
BAD_GATEWAY = 502
NO_ANSWER = "The server closed the connection before it answered"
NOT_REACHED = "The server could not be reached"
"""For a request that was certainly not sent."""
SIGN_IN = "It waits for a sign-in (OAuth)"
MORE_SCOPES = "It asks for more rights than the sign-in gave"
NOT_RENEWED = "Its token has ended, and its authorization server cannot be asked for another one now"
REFUSED = "It refuses the token or key of its entry (HTTP 401)"
"""Why a server refuses a request."""
SCOPE_CHARACTERS = 200
DATA = b"data:"
EVENTS = "text/event-stream"
DISCOVER, INITIALIZE = "server/discover", "initialize"
OPTIONS = "result_limit, list_bytes"
BROKE_OFF = "its answer broke off"
"""For an answer in JSON; the SDK has its own message for a stream."""


@asynccontextmanager
async def opened_client(
    headers: Mapping[str, str],
    *,
    limits: UpstreamLimits,
    credentials: bool = False,
    auth: httpx2.Auth | None = None,
    pools: HttpPools | None = None,
) -> AsyncIterator[ServerClient]:
    """The client of one session. An answer that exceeds ``limits`` is an error of its request.

    ``credentials``: the headers or the URL contain a token or key. ``auth`` adds a token to each request. ``pools``
    have the connections to use; without them, the client has its own.
    """
    unauthorized = REFUSED if credentials and auth is None else SIGN_IN
    made = await asyncio.to_thread(
        ServerClient, headers, limits, unauthorized, auth, pools=pools
    )  # it reads certificates, and the first one imports much code
    async with made as client:
        yield client


def session_streams(
    url: str, client: httpx2.AsyncClient, limits: UpstreamLimits
) -> AbstractAsyncContextManager[TransportStreams]:
    """The streams of a session of the handshake era."""
    return streamable_http_client(url, http_client=client, max_sse_event_size=limits.result)


@asynccontextmanager
async def event_stream(
    url: str,
    headers: Mapping[str, str],
    *,
    limits: UpstreamLimits,
    credentials: bool = False,
    auth: httpx2.Auth | None = None,
) -> AsyncIterator[TransportStreams]:
    """The streams of a session on HTTP with SSE (MCP 2024-11-05, transports), whose answers all come on one stream.

    Raises PegboardError if the server answers 401.
    """
    unauthorized = REFUSED if credentials and auth is None else SIGN_IN
    own = auth

    def client(
        headers: dict[str, str] | None = None, timeout: httpx2.Timeout | None = None, auth: httpx2.Auth | None = None
    ) -> httpx2.AsyncClient:
        """Uses our own timeouts: a stream of answers may be silent for days."""
        return ServerClient(headers or {}, limits, unauthorized, own, one_stream=True)

    try:
        async with sse_client(url, dict(headers), httpx_client_factory=client) as streams:
            yield streams
    except httpx2.HTTPStatusError as error:
        if error.response.status_code != UNAUTHORIZED:
            raise
        raise PegboardError(f"{unauthorized}.") from error


class ServerClient(httpx2.AsyncClient):
    """Turns a bad answer into an error of the call that waits for it; the SDK would end every call of the session.

    A failure to connect still ends the session, unless ``fails_alone`` says of it that it is one of the request alone.
    """

    def __init__(
        self,
        headers: Mapping[str, str],
        limits: UpstreamLimits,
        unauthorized: str = SIGN_IN,
        auth: httpx2.Auth | None = None,
        *,
        one_stream: bool = False,
        pools: HttpPools | None = None,
    ) -> None:
        """Allows any number of concurrent calls. ``one_stream``: every answer comes on the stream of a GET."""
        self._pools = pools
        pool = httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=IDLE_SECONDS)
        super().__init__(
            headers={"accept-encoding": ", ".join(WINDOWS)} | dict(headers),
            timeout=httpx2.Timeout(CONNECT_SECONDS, read=None),
            limits=pool,
            auth=auth,
            verify=trusted(),
        )
        self._limits = limits
        self._unauthorized = unauthorized
        self._one_stream = one_stream
        self.discovery_refused = False
        """Whether the server has refused to introduce itself for want of a token."""
        self._lists = ListRequests()
        self.fails_alone: Callable[[Exception], bool] = lambda error: False

    def _init_transport(self, *options: Any, **named: Any) -> httpx2.AsyncBaseTransport:
        make = partial(super()._init_transport, *options, **named)
        return make() if self._pools is None else self._pools.lent(None, make)

    def _init_proxy_transport(self, proxy: httpx2.Proxy, *options: Any, **named: Any) -> httpx2.AsyncBaseTransport:
        make = partial(super()._init_proxy_transport, proxy, *options, **named)
        return make() if self._pools is None else self._pools.lent(proxy, make)

    async def send(self, request: httpx2.Request, *, stream: bool = False, **options: Any) -> httpx2.Response:
        if request.method != "DELETE":
            return await self._answered(request, stream=stream, **options)
        with anyio.fail_after(END_SECONDS):
            return await self._answered(request, stream=False, **options)

    async def _answered(self, request: httpx2.Request, *, stream: bool, **options: Any) -> httpx2.Response:
        try:
            response = await super().send(request, stream=True, **options)
        except LOST as error:
            if request.method != "POST":
                raise
            logger.info("No answer came: %r", error)
            return _error(BAD_GATEWAY, types.CONNECTION_CLOSED, NO_ANSWER, request)
        except UNSENT as error:
            if request.method != "POST" or not _asked_in(request.content)[0] or not self.fails_alone(error):
                raise
            logger.info("A server could not be reached: %r", error)
            return _error(BAD_GATEWAY, types.CONNECTION_CLOSED, NOT_REACHED, request)
        except TokenNotRenewed:
            return _error(UNAUTHORIZED, types.INVALID_REQUEST, NOT_RENEWED, request)
        try:
            if request.method == "POST" and (why := self._refusal(response)):
                await response.aclose()
                return _error(response.status_code, types.INVALID_REQUEST, why, request)
            self._bound(response)
            await _mark_ended_session(response)
            if not stream:
                await response.aread()
        except BaseException:
            await response.aclose()
            raise
        return response

    def _refusal(self, response: httpx2.Response) -> str:
        """Why the server refused the request for want of the right token; empty for other answers.

        After a 401 to `server/discover` the SDK tries the handshake, for which some servers want no token. One without
        a handshake refuses that with another error; the 401 is the reason still.
        """
        if response.status_code == UNAUTHORIZED:
            self.discovery_refused |= _asked_in(response.request.content)[0] == DISCOVER
            return self._unauthorized
        shakes = self.discovery_refused and _asked_in(response.request.content)[0] == INITIALIZE
        if shakes and response.is_client_error:
            return self._unauthorized
        if response.status_code == FORBIDDEN and self._unauthorized == SIGN_IN and (more := wanted_scopes(response)):
            return f"{MORE_SCOPES}: {printable(' '.join(more))[:SCOPE_CHARACTERS]}"
        return ""

    def _bound(self, response: httpx2.Response) -> None:
        """Apply the limits to the decoded body; it is decoded here, chunk by chunk."""
        _undo_coding(response)
        request, kind = response.request, _kind(response)
        method, asked = _asked_in(request.content) if request.method == "POST" and response.is_success else ("", None)
        limit = self._limits.of(method)
        checked = CHECKED.get(kind)
        self._lists.asked(method, asked)
        if self._one_stream and request.method == "GET":
            response.stream = _OneStream(response.stream, "", limit)
        elif asked is not None and checked is not None:
            response.stream = checked(response.stream, asked, limit)
            if method.endswith(LIST_METHOD):
                response.stream = SHORTENED[kind](response.stream, self._lists, self._limits, all_lists=True)
        elif kind != EVENTS or not response.is_success or request.method == "DELETE":
            # readers of events have a limit for each event; bodies of other answers are read whole
            response.stream = _Cut(response.stream, limit)
        if kind == EVENTS and request.method == "GET":  # answers come here, too
            response.stream = _ShortEvents(response.stream, self._lists, self._limits)


def _kind(response: httpx2.Response) -> str:
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def _undo_coding(response: httpx2.Response) -> None:
    """Decode the body. Codings that were not requested are left, so that the answer cannot be read."""
    codings = [each.strip().lower() for each in response.headers.get("content-encoding", "").split(",")]
    for coding in reversed(codings):
        if coding in WINDOWS:
            response.stream = _Inflated(response.stream, coding)
    if codings != [""]:
        for name in ("content-encoding", "content-length"):
            response.headers.pop(name, None)


def _error(status: int, code: int, message: str, request: httpx2.Request) -> httpx2.Response:
    """An error response, which the SDK passes to the caller of this request."""
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    return httpx2.Response(status, json=body, request=request)


async def _mark_ended_session(response: httpx2.Response) -> None:
    """A 404 to a request of a session means that the server forgot it (MCP 2025-11-25, transports), whatever the body.

    The SDK reports that only if the body is not a JSON-RPC error, but the SDKs' own servers send one (M14).
    """
    if response.status_code != NOT_FOUND or SESSION_HEADER not in response.request.headers:
        return
    body = await response.aread()
    with suppress(ValueError, KeyError, TypeError):
        if json.loads(body)["error"]["code"] == types.METHOD_NOT_FOUND:
            return
    response.headers["content-type"] = "text/plain"


class _Unreadable(httpx2.StreamError):
    """The SDK treats this as an unparsable answer and reports it to the caller."""


class _Stream(httpx2.AsyncByteStream):
    """A response body that wraps another one."""

    def __init__(self, stream: httpx2.SyncByteStream | httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def aclose(self) -> None:
        await self._stream.aclose()  # type: ignore[union-attr]  # that of an asynchronous client


class _Inflated(_Stream):
    """A body without its content coding."""

    def __init__(self, stream: httpx2.SyncByteStream | httpx2.AsyncByteStream, coding: str) -> None:
        super().__init__(stream)
        self._coding = coding

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in inflated(self._stream, self._coding):  # type: ignore[arg-type]
                yield piece
        except zlib.error as error:
            raise _Unreadable("its content coding is invalid") from error


class _Cut(_Stream):
    """The first bytes of a body that answers no call."""

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
    """The body of an answer, checked while it is read."""

    def __init__(self, stream: httpx2.SyncByteStream | httpx2.AsyncByteStream, asked: int | str, limit: int) -> None:
        super().__init__(stream)
        self._asked = asked
        self._limit = limit

    async def _chunks(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._stream:  # type: ignore[union-attr]
                yield chunk
        except httpx2.TransportError as error:
            logger.info("An answer broke off: %r", error)
            raise _Unreadable(BROKE_OFF) from error

    def _is_anothers(self, head: bytes, tail: bytes) -> bool:
        came = answered(head, tail)
        return came is not None and str(came) != str(self._asked)


class _Whole(_Checked):
    """A JSON answer: checks that it is complete, within the limit, and answers this request (M23)."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        parts, size = list[bytes](), 0
        async for chunk in self._chunks():
            parts.append(chunk)
            size += len(chunk)
            if size > self._limit:
                raise _Unreadable(f"it is larger than the allowed {self._limit:,} bytes ({OPTIONS})")
        whole = b"".join(parts)
        if self._is_anothers(whole[:ENDS_BYTES], whole[-ENDS_BYTES:]):
            raise _Unreadable("it answers another request")
        yield readable(whole)


class _Events(_Checked):
    """A stream of events. Drops events that answer another request: the SDK would take them for the answer (M23)."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        lines = LineReader(self._limit + len(DATA))
        async for chunk in self._chunks():
            kept = [line for line in lines.feed(chunk) if not self._is_left_out(line)]
            if any(isinstance(line, TooLong) for line in kept):
                raise _too_large(self._limit)
            yield b"".join(readable(line) + b"\n" for line in kept if isinstance(line, bytes))

    def _is_left_out(self, line: bytes | TooLong) -> bool:
        if isinstance(line, TooLong) or not line.startswith(DATA):
            return False
        head = line[len(DATA) : len(DATA) + ENDS_BYTES].lstrip()
        return head.startswith(b"{") and self._is_anothers(head, line[-ENDS_BYTES:])


class _OneStream(_Events):
    """The stream of all answers of a session. No event is dropped, and none may exceed the limit."""

    def _is_left_out(self, line: bytes | TooLong) -> bool:
        return False


class _ShortLists(_Stream):
    """A JSON answer to a list request, cut before it is parsed."""

    def __init__(
        self,
        stream: httpx2.SyncByteStream | httpx2.AsyncByteStream,
        lists: ListRequests,
        limits: UpstreamLimits,
        *,
        all_lists: bool = False,
    ) -> None:
        """``all_lists``: everything on this stream answers a list request; otherwise the ids decide."""
        super().__init__(stream)
        self._lists = lists
        self._limits = limits
        self._all = all_lists

    async def __aiter__(self) -> AsyncIterator[bytes]:
        parts = [chunk async for chunk in self._stream]  # type: ignore[union-attr]
        yield self._short(b"".join(parts))

    def _short(self, message: bytes) -> bytes:
        """Raises httpx2.StreamError."""
        is_list = self._lists.answered(message) is not None
        try:
            return cut(message, self._limits) if is_list or self._all else message
        except ListTooLarge as reason:
            raise _Unreadable(str(reason)) from reason


class _ShortEvents(_ShortLists):
    """A stream of events with list answers cut; the data of each event is joined into one line."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        lines, data = LineReader(self._limits.result + len(DATA)), _Data(self._limits.result)
        async for chunk in self._stream:  # type: ignore[union-attr]
            for line in lines.feed(chunk):
                if isinstance(line, TooLong):
                    raise _too_large(self._limits.result)
                if not data.takes(line):
                    yield (b"" if line.strip() else self._event(data.taken())) + line + b"\n"
        yield self._event(data.taken())

    def _event(self, whole: bytes | None) -> bytes:
        """The data line of an event. Raises SSEError."""
        if whole is None:
            return b""
        try:
            return DATA + self._short(readable(whole)) + b"\n"
        except _Unreadable as error:
            raise httpx2.SSEError(str(error)) from error


class _Data:
    """The data of one event over any number of lines, with a maximum size in bytes (HTML, 9.2.6)."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._whole: bytearray | None = None

    def takes(self, line: bytes) -> bool:
        """Take the line if it is a data line; whether it was. Raises SSEError if the event is too large."""
        if not line.startswith(DATA):
            return False
        self._whole = bytearray() if self._whole is None else self._whole
        self._whole += b"\n"
        self._whole += line.removeprefix(DATA).rstrip(b"\r")
        if len(self._whole) > self._most + len(DATA):
            raise _too_large(self._most)
        return True

    def taken(self) -> bytes | None:
        """The data as one line, or None. Line ends become blanks, which mean the same between JSON values."""
        whole, self._whole = self._whole, None
        return None if whole is None else bytes(whole[1:]).replace(b"\n", b" ")


def _too_large(limit: int) -> httpx2.SSEError:
    return httpx2.SSEError(f"it is larger than the allowed {limit:,} bytes ({OPTIONS})")


LOST = (
    httpx2.ReadError,
    httpx2.WriteError,
    httpx2.WriteTimeout,
    httpx2.PoolTimeout,
    httpx2.RemoteProtocolError,
)
"""Errors of one request, of which it is not known whether the server carried it out."""
UNSENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError)
"""Errors before a request is sent."""
SHORTENED: Mapping[str, type[_ShortLists]] = {"application/json": _ShortLists, EVENTS: _ShortEvents}
CHECKED: Mapping[str, type[_Checked]] = {"application/json": _Whole, EVENTS: _Events}


def _asked_in(request: bytes) -> tuple[str, int | str | None]:
    """Method and id of one of our requests, as the SDK encodes it."""
    message = json.loads(request)
    method = message.get("method", "")
    return method, message.get("id") if method else None
