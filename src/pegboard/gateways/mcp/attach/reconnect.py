"""HTTP to a serve that may restart: requests that never reached it are repeated, and failed ones are answered."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import cast

import anyio
import httpx2
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types import CONNECTION_CLOSED

SESSION = "mcp-session-id"
JSON = {"content-type": "application/json"}
WISHES = (b"logging/setLevel", b"resources/subscribe", b"resources/unsubscribe")
ACCEPT = {"accept": "application/json, text/event-stream"}
REPEATED_SECONDS = 5.0
"""Seconds that a session which is opened again waits for answers to what its client had asked for before."""
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def reconnecting_client(retry_seconds: float) -> httpx2.AsyncClient:
    """An HTTP client for a serve on this machine: no proxy, and no limit on the duration of a call, nor on how many
    there are: what ends one of them, or answers its question, must not wait for a connection."""
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
    transport = Reconnecting(httpx2.AsyncHTTPTransport(trust_env=False, limits=limits), retry_seconds)
    return httpx2.AsyncClient(transport=transport, trust_env=False, timeout=httpx2.Timeout(30.0, read=None))


class Reconnecting(httpx2.AsyncBaseTransport):
    """Turns connection errors into answers to the one request that they concern.

    Otherwise such an error would end the SDK's transport with all its other requests. A session that the serve has
    forgotten is reopened with the client's own handshake: over stdio the client has no way to do that.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport, retry_seconds: float) -> None:
        self._inner = inner
        self._retry_seconds = retry_seconds
        self._hello: bytes | None = None
        self._wishes: dict[str, bytes] = {}
        """What the client has asked for until it says otherwise: its log level, and by address the resources that it
        watches."""
        self._sessions: dict[str, str] = {}
        self._renewing = anyio.Lock()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            first = self._in_session(request)
            response = await self._sent(first)
            if response.status_code == httpx2.codes.NOT_FOUND and await self._renewed(request, first):
                await response.aclose()
                response = await self._sent(self._in_session(request))
        except httpx2.TransportError as error:
            return _failed(request, error)
        if request.method == "DELETE":
            return await _ended(response)
        stream = cast(httpx2.AsyncByteStream, response.stream)
        response.stream = Forgiving(stream, ends=request.method == "GET")
        return response

    async def _sent(self, request: httpx2.Request) -> httpx2.Response:
        while True:
            try:
                return await self._inner.handle_async_request(request)
            except httpx2.ConnectError:
                if request.method == "DELETE":
                    raise
                await anyio.sleep(self._retry_seconds)

    def _in_session(self, request: httpx2.Request) -> httpx2.Request:
        """The request with the current session id; the SDK keeps using the first one."""
        session = request.headers.get(SESSION)
        if session is None and request.method == "POST" and b'"initialize"' in request.content:
            self._hello = request.content
        if request.method == "POST":
            self._note_wish(request.content)
        if session is None or session not in self._sessions:
            return request
        headers = httpx2.Headers(request.headers)
        headers[SESSION] = self._sessions[session]
        return httpx2.Request(
            request.method, request.url, headers=headers, stream=request.stream, extensions=request.extensions
        )

    async def _renewed(self, request: httpx2.Request, sent: httpx2.Request) -> bool:
        """Whether there is a newer session than the one in which the request was ``sent``."""
        first = request.headers.get(SESSION)
        if first is None or self._hello is None or request.method == "DELETE":
            return False
        async with self._renewing:
            if self._sessions.get(first, first) == sent.headers[SESSION]:
                session = await self._opened(request)
                self._sessions |= {first: session} if session else {}
            return self._sessions.get(first, first) != sent.headers[SESSION]

    async def _opened(self, request: httpx2.Request) -> str | None:
        """The id of a new session, opened by repeating the client's handshake."""
        common = JSON | ACCEPT
        answer = await self._sent(httpx2.Request("POST", request.url, headers=common, content=self._hello))
        await answer.aread()
        session = answer.headers.get(SESSION)
        if session is None:
            return None
        common |= {key: request.headers[key] for key in (MCP_PROTOCOL_VERSION_HEADER,) if key in request.headers}
        ready = httpx2.Request(
            "POST", request.url, headers=common | {SESSION: session}, content=json.dumps(INITIALIZED)
        )
        await (await self._sent(ready)).aread()
        with anyio.move_on_after(REPEATED_SECONDS):  # the serve goes on with what takes longer
            async with anyio.create_task_group() as wishes:
                for wish in self._wishes.values():
                    again = httpx2.Request("POST", request.url, headers=common | {SESSION: session}, content=wish)
                    wishes.start_soon(self._wish_again, again)
        return str(session)

    async def _wish_again(self, request: httpx2.Request) -> None:
        with suppress(httpx2.TransportError):  # the client's own request is told
            answer = await self._sent(request)
            await answer.aread()

    def _note_wish(self, content: bytes) -> None:
        if not any(method in content for method in WISHES):
            return
        with suppress(ValueError):
            message = json.loads(content)
            params = message.get("params") or {}
            match message.get("method"):
                case "logging/setLevel":
                    self._wishes[""] = content
                case "resources/subscribe":
                    self._wishes[str(params.get("uri"))] = content
                case "resources/unsubscribe":
                    self._wishes.pop(str(params.get("uri")), None)

    async def aclose(self) -> None:
        await self._inner.aclose()


class Forgiving(httpx2.AsyncByteStream):
    """A body that treats a broken connection as its end: the standing stream is then reopened."""

    def __init__(self, inner: httpx2.AsyncByteStream, *, ends: bool) -> None:
        self._inner = inner
        self._ends = ends

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._inner:
                yield chunk
        except httpx2.TransportError as error:
            if not self._ends:
                raise httpx2.StreamError(_message(error)) from error

    async def aclose(self) -> None:
        await self._inner.aclose()


async def _ended(response: httpx2.Response) -> httpx2.Response:
    """Treats a missing session as ended."""
    await response.aclose()
    return httpx2.Response(204)


def _failed(request: httpx2.Request, error: httpx2.TransportError) -> httpx2.Response:
    """The answer for a failed request; the SDK fills in the request's id."""
    if request.method == "DELETE":
        return httpx2.Response(204)
    said = {"code": CONNECTION_CLOSED, "message": _message(error)}
    return httpx2.Response(502, headers=JSON, content=json.dumps({"jsonrpc": "2.0", "id": None, "error": said}))


def _message(error: httpx2.TransportError) -> str:
    return f"The connection to `pegboard serve` failed: {type(error).__name__}."
