"""HTTP spelled out, for what no well-behaved server or client does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

Handle = Callable[["Arrived", asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """A request as its bytes came; ``gone`` resolves when the client has closed the connection."""

    head: bytes
    body: bytes
    reader: asyncio.StreamReader

    async def gone(self) -> bool:
        return await self.reader.read() == b""

    @property
    def lines(self) -> list[bytes]:
        return self.head.split(b"\r\n")


def answer(body: bytes, *headers: bytes, status: bytes = OK) -> bytes:
    return b"\r\n".join([status.rstrip(), *headers, b"content-length: %d" % len(body), b"", body])


@asynccontextmanager
async def listening(handle: Handle) -> AsyncIterator[str]:
    """The host and port of a server that handles each request with this."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_ones.add(writer)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while not writer.is_closing():
                head = await reader.readuntil(b"\r\n\r\n")
                await handle(Arrived(head=head[:-4], body=await _body(head, reader), reader=reader), writer)
                await writer.drain()
        writer.close()
        open_ones.discard(writer)

    open_ones: set[asyncio.StreamWriter] = set()
    server = await asyncio.start_server(connected, "127.0.0.1", 0, limit=2**26)
    try:
        yield "{}:{}".format(*server.sockets[0].getsockname())
    finally:
        server.close()
        for writer in open_ones:
            writer.close()


async def _body(head: bytes, reader: asyncio.StreamReader) -> bytes:
    lower = head.lower()
    if b"transfer-encoding: chunked" in lower:
        pieces = []
        while size := int(await reader.readline(), 16):
            pieces.append(await reader.readexactly(size))
            await reader.readexactly(2)
        await reader.readline()
        return b"".join(pieces)
    _, found, rest = lower.partition(b"content-length:")
    return await reader.readexactly(int(rest.split(b"\r\n")[0])) if found else b""


def request(target: str, body: bytes = b"", *headers: bytes, method: str = "POST") -> bytes:
    """The bytes of a request after which the connection is to close."""
    lines = [f"{method} {target} HTTP/1.1".encode(), b"host: gateway", b"connection: close", *headers]
    lines += [b"content-length: %d" % len(body)] if body else []
    return b"\r\n".join([*lines, b"", body])


async def exchange(address: str, sent: bytes) -> tuple[int, Sequence[bytes], bytes]:
    """Status, header lines and raw body (with its chunks, if it has any) of the answer."""
    reader, writer = await connect(address)
    writer.write(sent)
    whole = await reader.read()
    writer.close()
    head, _, body = whole.partition(b"\r\n\r\n")
    first, *headers = head.split(b"\r\n")
    return int(first.split()[1]) if first else 0, headers, body


async def connect(address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = address.rpartition(":")
    return await asyncio.open_connection(host, int(port), limit=2**26)
