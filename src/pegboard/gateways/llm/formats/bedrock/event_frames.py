"""Frames of `application/vnd.amazon.eventstream` (AWS SDK guide, event stream encoding; Smithy 2.0, read 2026-11-23).

A frame: its length and that of its headers (4 bytes each, big-endian), the checksum of these, headers, the payload, the
checksum of all. Only the payload is read here; checksums are the client's to check, as every byte passes unchanged.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from pegboard.gateways.event_stream import MOST_HELD
from pegboard.gateways.llm.formats.protocol import Observation
from pegboard.gateways.llm.formats.streams import ReadAnswer, quietly

PRELUDE = struct.Struct(">III")
CHECKSUM = 4


class EventFrames:
    """The payloads of frames, from chunks of any size. After a frame that cannot be one, or is too long, nothing more
    is read."""

    def __init__(self, most: int = MOST_HELD) -> None:
        self._most = most
        self._held = bytearray()
        self._lost = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The payload of each frame that this chunk completes."""
        if self._lost:
            return
        self._held += chunk
        while len(self._held) >= PRELUDE.size:
            length, headers, _ = PRELUDE.unpack_from(self._held)
            begin = PRELUDE.size + headers
            if length > self._most or begin + CHECKSUM > length:
                self._lost = True
                self._held.clear()
                return
            if len(self._held) < length:
                return
            payload = bytes(self._held[begin : length - CHECKSUM])
            del self._held[:length]
            yield payload


class FrameObserver:
    """Observes an event stream."""

    def __init__(self, read: ReadAnswer) -> None:
        self._read = read
        self._frames = EventFrames()

    def feed(self, chunk: bytes) -> Sequence[Observation]:
        return [seen for payload in self._frames.feed(chunk) for seen in quietly(self._read, payload)]

    def finish(self) -> Sequence[Observation]:
        return ()
