"""Decompression of response bodies in chunks of bounded size: a megabyte of gzip may expand to gigabytes."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Mapping

WINDOWS: Mapping[str, int] = {"gzip": 31, "x-gzip": 31, "deflate": 47}
"""Content codings that zlib decodes, with the window size for each (RFC 9110, 8.4.1)."""
PIECE = 64 * 1024
"""Most bytes of a decompressed chunk."""


class Inflater:
    """Decompresses one body. Its reader counts the bytes and stops at its own limit."""

    def __init__(self, coding: str) -> None:
        self._inflater = zlib.decompressobj(WINDOWS[coding])

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """The decompressed bytes, at most ``PIECE`` at a time. Raises zlib.error.

        >>> packed = zlib.compress(bytes(3 * PIECE))
        >>> [len(piece) for piece in Inflater("deflate").pieces(packed)] == [PIECE] * 3
        True
        """
        while data and not self._inflater.eof:
            piece = self._inflater.decompress(data, PIECE)
            data = self._inflater.unconsumed_tail
            if piece:
                yield piece
            elif not data:
                return
        while not self._inflater.eof and (piece := self._inflater.decompress(b"", PIECE)):
            yield piece


async def inflated(compressed: AsyncIterable[bytes], coding: str) -> AsyncIterator[bytes]:
    """The decompressed chunks of a body; yields to the event loop after each. Raises zlib.error."""
    inflater = Inflater(coding)
    async for data in compressed:
        for piece in inflater.pieces(data):
            yield piece
            await asyncio.sleep(0)
