"""HTTP to a serve that may restart: what never reached it is sent again, and what failed gets an answer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import cast

import anyio
import httpx2
from mcp_types import CONNECTION_CLOSED

JSON = {"content-type": "application/json"}


def reconnecting_client(retry_seconds: float) -> httpx2.AsyncClient:
    """For a serve on this machine: no proxy, no limit on the time a call may take."""
    transport = Reconnecting(httpx2.AsyncHTTPTransport(trust_env=False), retry_seconds)
    return httpx2.AsyncClient(transport=transport, trust_env=False, timeout=httpx2.Timeout(30.0, read=None))


class Reconnecting(httpx2.AsyncBaseTransport):
    """Errors of the connection become what the SDK's transport can give to the one request that they concern.

    As it is, such an error would end the transport, with all other requests on it.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport, retry_seconds: float) -> None:
        self._inner = inner
        self._retry_seconds = retry_seconds

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        while True:
            try:
                response = await self._inner.handle_async_request(request)
            except httpx2.ConnectError:
                if request.method == "DELETE":
                    return httpx2.Response(204)
                await anyio.sleep(self._retry_seconds)
            except httpx2.TransportError as error:
                return _failed(error)
            else:
                stream = cast(httpx2.AsyncByteStream, response.stream)
                response.stream = Forgiving(stream, ends=request.method == "GET")
                return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class Forgiving(httpx2.AsyncByteStream):
    """A body that breaks off simply ends on the standing stream, which is then opened again."""

    def __init__(self, inner: httpx2.AsyncByteStream, *, ends: bool) -> None:
        self._inner = inner
        self._ends = ends

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._inner:
                yield chunk
        except httpx2.TransportError as error:
            if not self._ends:
                raise httpx2.StreamError(_said(error)) from error

    async def aclose(self) -> None:
        await self._inner.aclose()


def _failed(error: httpx2.TransportError) -> httpx2.Response:
    """The SDK gives such an error the id of the request."""
    said = {"code": CONNECTION_CLOSED, "message": _said(error)}
    return httpx2.Response(502, headers=JSON, content=json.dumps({"jsonrpc": "2.0", "id": None, "error": said}))


def _said(error: httpx2.TransportError) -> str:
    return f"The connection to `pegboard serve` failed: {type(error).__name__}."
