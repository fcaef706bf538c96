"""The transport of requests whose addresses a server names: they must not reach into the user's own network.

A server that can make its clients fetch any URL (server-side request forgery) would otherwise read private services by
way of its metadata (MCP 2025-11-25, security best practices).
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from urllib.parse import urlsplit

import httpx2

from pegboard.errors import PegboardError
from pegboard.upstreams.tls import trusted

SECONDS = 30.0
"""Time limit of each part of a request."""
MOST_BYTES = 1024 * 1024
"""Size of an answer: metadata, a registration, tokens."""
PLAIN = "identity"
"""The encoding of an answer that is not compressed."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class AddressRefused(PegboardError):  # noqa: N818
    """A URL that a server named and that must not be fetched."""


class GuardedTransport(httpx2.AsyncHTTPTransport):
    """Sends to the server's own origin, and to public addresses by https.

    A server with a private or loopback address may name others of its kind, and so may all with ``private``.
    Requests go to the address that was checked: a name that resolves to another one a moment later changes nothing.
    """

    def __init__(self, server: str, url: str, *, private: bool = False) -> None:
        super().__init__(verify=trusted())
        self._server = server
        self._origin = _origin(url)
        self._private = private

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.extensions.setdefault("timeout", httpx2.Timeout(SECONDS).as_dict())  # the SDK's requests have none
        request.headers["accept-encoding"] = PLAIN
        sent = request
        if _origin(str(request.url)) != self._origin:
            sent = _at(request, await self._checked(request.url))
        response = await super().handle_async_request(sent)
        response.stream = _Bounded(response.stream, response.headers.get("content-encoding", PLAIN))
        return response

    async def _checked(self, url: httpx2.URL) -> Address:
        """Raises AddressRefused."""
        own = urlsplit(self._origin).hostname or ""
        found = await _addresses(url.host, url.port or 443)
        if not found:
            raise self._refused(url, "its name is not known")
        inside = self._private or await _is_inside(own)
        if any(not each.is_global for each in found) and not inside:
            raise self._refused(url, "it is a private address, and the server itself is public")
        if any(each.is_link_local for each in found) and not self._private:
            raise self._refused(url, "it is a link-local address")
        if url.scheme != "https" and not all(each.is_loopback for each in found):
            raise self._refused(url, "it is not https")
        return found[0]

    def _refused(self, url: httpx2.URL, why: str) -> AddressRefused:
        return AddressRefused(
            f"Server {self._server!r} names {url.host!r} for signing in, which is not contacted: {why}.",
            remedy='If that is right, write "oauth": {"private_addresses": true} in its entry.',
        )


def _at(request: httpx2.Request, address: Address) -> httpx2.Request:
    """The request to this address; its Host header and the name in the certificate stay."""
    host = request.url.host
    if host == str(address):
        return request
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=str(address)),
        headers=request.headers,
        stream=request.stream,
        extensions=dict(request.extensions) | {"sni_hostname": host},
    )


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}".lower()


async def _is_inside(host: str) -> bool:
    found = await _addresses(host, 443)
    return bool(found) and not any(each.is_global for each in found)


async def _addresses(host: str, port: int) -> list[Address]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return [_plain(ipaddress.ip_address(str(each[4][0]).partition("%")[0])) for each in found]


def _plain(address: Address) -> Address:
    """The IPv4 address inside one of IPv6, if it has one."""
    return getattr(address, "ipv4_mapped", None) or address


class _Bounded(httpx2.AsyncByteStream):
    """A body that ends with an error when it is longer than any that signing in needs, or compressed: a small one could
    become as large as it likes."""

    def __init__(self, stream: object, encoding: str) -> None:
        self._stream = stream
        self._encoding = encoding.strip().lower()

    async def __aiter__(self):  # type: ignore[no-untyped-def]  # bytes
        if self._encoding not in ("", PLAIN):
            raise httpx2.ReadError("an answer is compressed, which was not asked for")
        size = 0
        async for chunk in self._stream:  # type: ignore[attr-defined]
            size += len(chunk)
            if size > MOST_BYTES:
                raise httpx2.ReadError(f"an answer is larger than {MOST_BYTES:,} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()  # type: ignore[attr-defined]


def guarded_client(server: str, url: str, *, private: bool = False, seconds: float = SECONDS) -> httpx2.AsyncClient:
    """A client for signing in at a server; it follows no redirects."""
    return httpx2.AsyncClient(transport=GuardedTransport(server, url, private=private), timeout=httpx2.Timeout(seconds))
