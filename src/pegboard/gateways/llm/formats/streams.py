"""Observes answers as they pass: server-sent events or one JSON document, in chunks cut anywhere (P27)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from pegboard.errors import UpstreamError
from pegboard.gateways.event_stream import MOST_HELD, EventLines
from pegboard.gateways.llm.formats.edits import loaded, written
from pegboard.gateways.llm.formats.json_reader import text_of
from pegboard.gateways.llm.formats.protocol import Observation, Observer
from pegboard.gateways.llm.formats.tool_search import Document

END = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")
LONGEST_END = 4
MOST_EVENT = 64 * 1024 * 1024
"""Bytes of an event: the last one of Responses repeats all that the answer has, images too."""
SERVER_SENT = "text/event-stream"
STREAMS = frozenset({SERVER_SENT, "application/vnd.amazon.eventstream"})
"""The media types of streamed answers."""
MOST_OUTPUT = 128_000
"""Tokens that an answer is taken for at most where nobody counted them: it may be a picture."""
ReadAnswer = Callable[[bytes], Iterable[Observation]]
"""Reads the data of one event, or the whole document. May raise what msgspec raises: that part is then skipped."""


class Frames:
    """Splits a stream into events without losing a byte."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, piece: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Each event that this chunk completes: its bytes and its data. Raises UpstreamError for one that is too
        long."""
        searched = max(0, len(self._held) - LONGEST_END)
        self._held += piece
        begin = 0
        for end in [found.end() for found in END.finditer(self._held, searched)]:
            yield _event(bytes(self._held[begin:end]))
            begin = end
        del self._held[:begin]
        if len(self._held) > MOST_EVENT:
            raise UpstreamError("", f"An event of the answer has more than {MOST_EVENT:,} bytes.")

    def finish(self) -> Iterator[tuple[bytes, bytes]]:
        """The last event if it was not terminated."""
        held = bytes(self._held)
        self._held.clear()
        if held:
            yield _event(held)


class EventTranslator:
    """Translates a stream event by event."""

    def __init__(self) -> None:
        self._frames = Frames()

    def feed(self, piece: bytes) -> bytes:
        return b"".join(self._passed(raw, loaded(data)) for raw, data in self._frames.feed(piece))

    def finish(self) -> bytes:
        return b"".join(self._passed(raw, loaded(data)) for raw, data in self._frames.finish())

    def _passed(self, raw: bytes, event: Document | None) -> bytes:
        """The output for an event; None for data that is not a JSON object."""
        raise NotImplementedError


class StreamObserver:
    """Observes server-sent events."""

    def __init__(self, read: ReadAnswer) -> None:
        self._read = read
        self._events = EventLines()

    def feed(self, chunk: bytes) -> Sequence[Observation]:
        return [seen for data in self._events.feed(chunk) for seen in quietly(self._read, data)]

    def finish(self) -> Sequence[Observation]:
        return [seen for data in self._events.finish() for seen in quietly(self._read, data)]


class DocumentObserver:
    """Observes an answer that is one JSON document, read when it is complete."""

    def __init__(self, read: ReadAnswer, most: int = MOST_HELD) -> None:
        self._read = read
        self._most = most
        self._pieces: list[bytes] = []
        self._held = 0

    def feed(self, chunk: bytes) -> Sequence[Observation]:
        self._held += len(chunk)
        if self._held > self._most:
            self._pieces.clear()
        else:
            self._pieces.append(chunk)
        return ()

    def finish(self) -> Sequence[Observation]:
        return list(quietly(self._read, b"".join(self._pieces))) if self._pieces else []


class NullObserver:
    """Observes an answer of unknown format: reports nothing."""

    def feed(self, chunk: bytes) -> Sequence[Observation]:
        return ()

    def finish(self) -> Sequence[Observation]:
        return ()


def observer(content_type: str, read: ReadAnswer) -> Observer:
    """The observer for an answer of this Content-Type."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind == SERVER_SENT:
        return StreamObserver(read)
    return DocumentObserver(read) if kind == "application/json" or kind.endswith("+json") else NullObserver()


def events_in(piece: bytes) -> int:
    """About how many events of a stream begin in this part of it."""
    return piece.count(b"data:") + piece.count(b":event-type")


def tokens_of(came: int, events: int, *, streamed: bool) -> int:
    """About how many tokens an answer has of which so many bytes came: one an event, or a quarter of the bytes."""
    return min(events if streamed else came // 4, MOST_OUTPUT)


def named_event(event: Document) -> bytes:
    """A server-sent event whose name is the ``type`` of its data."""
    return b"event: " + text_of(event.get("type")).encode() + b"\ndata: " + written(event) + b"\n\n"


def quietly(read: ReadAnswer, data: bytes) -> Iterator[Observation]:
    """Skips what cannot be read: an answer is observed for statistics and passes whatever it contains."""
    try:
        yield from read(data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return


def _event(raw: bytes) -> tuple[bytes, bytes]:
    lines = EventLines()
    return raw, b"\n".join([*lines.feed(raw), *lines.finish()])
