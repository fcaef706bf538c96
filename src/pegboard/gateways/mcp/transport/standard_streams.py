"""Standard input and output as the SDK's stdio transport, without its threads where both are pipes.

The SDK reads and writes each message on a thread, which takes as long as everything else that is done for a call.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

from mcp.server.stdio import stdio_server

from pegboard import operating_system

LONGEST_LINE = 256 * 1024 * 1024
STDIN, STDOUT, STDERR = 0, 1, 2


@asynccontextmanager
async def standard_streams() -> AsyncIterator[tuple[Any, Any]]:
    """What `stdio_server` gives. While it is used, both descriptors lead elsewhere (input is empty, output goes to
    standard error), so that no stray line of this process or its children reaches the client."""
    if not operating_system.loop_reads(STDIN, STDOUT):
        async with stdio_server() as streams:
            yield streams
        return
    with _claimed() as (source, target):
        stdin, stdout = await Stdin.open(source), await Stdout.open(target)
        try:
            async with stdio_server(stdin=stdin, stdout=stdout) as streams:  # type: ignore[arg-type]  # enough of a file
                try:
                    yield streams
                finally:
                    stdin.close()
        finally:
            stdout.close()


class Stdin:
    """Lines of a pipe. Unlike a thread that reads, waiting for one can be cancelled."""

    def __init__(self, reader: asyncio.StreamReader, transport: asyncio.ReadTransport) -> None:
        self._reader = reader
        self._transport = transport

    @classmethod
    async def open(cls, descriptor: int) -> Stdin:
        """Closing it closes the descriptor."""
        reader = asyncio.StreamReader(limit=LONGEST_LINE)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", buffering=0)
        )
        return cls(reader, transport)

    def close(self) -> None:
        self._transport.close()
        self._reader.feed_eof()

    def __aiter__(self) -> Stdin:
        return self

    async def __anext__(self) -> str:
        line = await self._reader.readline()
        if not line:
            raise StopAsyncIteration
        return line.decode("utf-8", "replace")


class Stdout:
    """Texts into a pipe. What a client that is gone would have read is dropped: its input has ended too."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    @classmethod
    async def open(cls, descriptor: int) -> Stdout:
        """Closing it closes the descriptor."""
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.connect_write_pipe(
            asyncio.streams.FlowControlMixin, os.fdopen(descriptor, "wb", buffering=0)
        )
        transport.set_write_buffer_limits(high=0)  # so that `flush` waits until all is written
        return cls(asyncio.StreamWriter(transport, protocol, None, loop))

    async def write(self, text: str) -> None:
        if self._writer.transport.is_closing():
            return  # uvloop raises RuntimeError, and asyncio logs a warning
        self._writer.write(text.encode("utf-8", "replace"))

    async def flush(self) -> None:
        with suppress(ConnectionError):
            await self._writer.drain()

    def close(self) -> None:
        self._writer.close()


@contextmanager
def _claimed() -> Iterator[tuple[int, int]]:
    """Descriptors that only the transport knows; the standard ones are put back at the end, blocking as before."""
    private = [operating_system.private_copy(each, STDERR + 1) for each in (STDIN, STDOUT)]
    kept = [os.dup(each) for each in private]
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, STDIN)
    os.close(nothing)
    os.dup2(STDERR, STDOUT)
    try:
        yield private[0], private[1]
    finally:
        for descriptor, standard in zip(kept, (STDIN, STDOUT), strict=True):
            os.set_blocking(descriptor, True)
            os.dup2(descriptor, standard)
            os.close(descriptor)
