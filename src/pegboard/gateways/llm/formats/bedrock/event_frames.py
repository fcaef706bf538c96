"""Frames of `application/vnd.amazon.eventstream` (AWS SDK guide, event stream encoding; Smithy 2.0, read 2026-11-23).

A frame: its length and that of its headers (4 bytes each, big-endian), the checksum of these, headers, the payload, the
checksum of all. Checksums of what arrives are the client's to check: frames pass unchanged, or are written anew.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

from pegboard.gateways.event_stream import MOST_HELD
from pegboard.gateways.llm.formats.edits import loaded, written
from pegboard.gateways.llm.formats.protocol import Observation
from pegboard.gateways.llm.formats.streams import ReadAnswer, quietly
from pegboard.gateways.llm.formats.tool_search import Document

PRELUDE = struct.Struct(">III")
LENGTHS = struct.Struct(">II")
CHECKSUM = 4
TEXT_HEADER = 7
"""The type of a header whose value is text, with its length in 2 bytes before it."""
EVENT_TYPE = ":event-type"


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """``raw`` is the frame as it came, ``headers`` and ``payload`` are parts of it."""

    raw: bytes
    headers: bytes
    payload: bytes

    @property
    def event(self) -> str:
        """The type of the event; empty for an exception, or where a header of another type comes before it."""
        return texts_of(self.headers).get(EVENT_TYPE, "")

    @property
    def document(self) -> Document | None:
        return loaded(self.payload)


class EventFrames:
    """The frames of a stream, from chunks of any size. After a frame that cannot be one, or is too long, nothing more
    is read: what arrives is then in ``left``, and so is what is incomplete."""

    def __init__(self, most: int = MOST_HELD) -> None:
        self._most = most
        self._held = bytearray()
        self._lost = False

    def whole(self, chunk: bytes) -> Iterator[Frame]:
        """Each frame that this chunk completes."""
        self._held += chunk
        while not self._lost and len(self._held) >= PRELUDE.size:
            length, headers, _ = PRELUDE.unpack_from(self._held)
            begin = PRELUDE.size + headers
            if length > self._most or begin + CHECKSUM > length:
                self._lost = True
                return
            if len(self._held) < length:
                return
            raw = bytes(self._held[:length])
            del self._held[:length]
            yield Frame(raw=raw, headers=raw[PRELUDE.size : begin], payload=raw[begin : length - CHECKSUM])

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The payload of each frame that this chunk completes."""
        yield from (frame.payload for frame in self.whole(chunk))
        if self._lost:
            self._held.clear()

    @property
    def is_lost(self) -> bool:
        return self._lost

    def left(self) -> bytes:
        """What is held of the stream and is no frame; it is held no longer."""
        left = bytes(self._held)
        self._held.clear()
        return left


class FrameObserver:
    """Observes an event stream."""

    def __init__(self, read: ReadAnswer) -> None:
        self._read = read
        self._frames = EventFrames()

    def feed(self, chunk: bytes) -> Sequence[Observation]:
        return [seen for payload in self._frames.feed(chunk) for seen in quietly(self._read, payload)]

    def finish(self) -> Sequence[Observation]:
        return ()


def event_frame(event: str, payload: Document) -> bytes:
    """The frame of an event."""
    return _frame({EVENT_TYPE: event, ":content-type": "application/json", ":message-type": "event"}, payload)


def exception_frame(kind: str, message: str) -> bytes:
    """The frame of an error that ends a stream, such as `internalServerException`."""
    said = {":exception-type": kind, ":content-type": "application/json", ":message-type": "exception"}
    return _frame(said, {"message": message})


def texts_of(headers: bytes) -> dict[str, str]:
    """The headers whose values are text, up to the first of another type."""
    found: dict[str, str] = {}
    at = 0
    while at < len(headers):
        name_end = at + 1 + headers[at]
        if headers[name_end : name_end + 1] != bytes([TEXT_HEADER]):
            break
        begin = name_end + 3
        end = begin + int.from_bytes(headers[name_end + 1 : begin])
        found[headers[at + 1 : name_end].decode("utf-8", "replace")] = headers[begin:end].decode("utf-8", "replace")
        at = end
    return found


def _frame(headers: Mapping[str, str], payload: Document) -> bytes:
    head = b"".join(_header(name.encode(), value.encode()) for name, value in headers.items())
    body = written(payload)
    lengths = LENGTHS.pack(PRELUDE.size + len(head) + len(body) + CHECKSUM, len(head))
    whole = lengths + crc32(lengths).to_bytes(CHECKSUM) + head + body
    return whole + crc32(whole).to_bytes(CHECKSUM)


def _header(name: bytes, value: bytes) -> bytes:
    return bytes([len(name)]) + name + bytes([TEXT_HEADER]) + len(value).to_bytes(2) + value
