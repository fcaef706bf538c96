"""A server on streamable HTTP, as the SDK's transport reaches it; one answer that goes wrong is one call that does."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx2
import mcp_types as types
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client

from pegboard.upstreams.lines import ENDS_BYTES, answered

CONNECT_SECONDS = 30.0
"""To connect and to write. How long an answer may take, the call decides, and a stream of news may be silent for days."""
SESSION_HEADER = "mcp-session-id"
NOT_FOUND = 404
BAD_GATEWAY = 502
NO_ANSWER = "The server closed the connection before it answered"
BROKE_OFF = "its answer broke off"
"""Of an answer that is JSON; the SDK finds words of its own for a stream."""


@asynccontextmanager
async def web(url: str, headers: Mapping[str, str], *, limit: int) -> AsyncIterator[TransportStreams]:
    """The streams of a session. An answer of more than ``limit`` bytes is an error for whom it answers."""
    async with (
        _Client(headers, limit) as client,
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
        if response.is_success and response.headers.get("content-type", "").lower().startswith("application/json"):
            response.stream = _Checked(response, self._limit)
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
    """A body of JSON, within the limit, whole, and the answer to this very request (M23)."""

    def __init__(self, response: httpx2.Response, limit: int) -> None:
        self._stream = response.stream
        self._asked = response.request.content
        self._plain = "content-encoding" not in response.headers
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        head, tail, size = b"", b"", 0
        try:
            async for chunk in self._stream:  # type: ignore[union-attr]  # that of an asynchronous client
                head = (head + chunk[:ENDS_BYTES])[:ENDS_BYTES]
                tail = (tail + chunk[-ENDS_BYTES:])[-ENDS_BYTES:]
                size += len(chunk)
                if size > self._limit:
                    raise _Unreadable(f"it is larger than the {self._limit:,} bytes that are allowed (result_limit)")
                yield chunk
        except httpx2.TransportError as error:
            raise _Unreadable(BROKE_OFF) from error
        wanted, came = _id_in(self._asked), answered(head, tail)
        if self._plain and None not in (wanted, came) and str(wanted) != str(came):
            raise _Unreadable("it answers another request")

    async def aclose(self) -> None:
        await self._stream.aclose()  # type: ignore[union-attr]


def _id_in(request: bytes) -> int | str | None:
    with suppress(ValueError):
        message = json.loads(request)
        if isinstance(message, dict):
            found: int | str | None = message.get("id")
            return found
    return None
