"""Following an answer as it passes by: server-sent events or one JSON document, in pieces cut anywhere (P27)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from pegboard.gateways.event_stream import MOST_HELD, EventLines
from pegboard.gateways.llm.codec import Observation, Observer

ReadAnswer = Callable[[bytes], Iterable[Observation]]
"""What one event's data, or the one document, says. May raise what msgspec does: that part is then not followed."""


class StreamObserver:
    """Of server-sent events."""

    def __init__(self, read: ReadAnswer) -> None:
        self._read = read
        self._events = EventLines()

    def feed(self, chunk: bytes) -> Sequence[Observation]:
        return [seen for data in self._events.feed(chunk) for seen in quietly(self._read, data)]

    def finish(self) -> Sequence[Observation]:
        return [seen for data in self._events.finish() for seen in quietly(self._read, data)]


class DocumentObserver:
    """Of an answer that is one JSON document, read when it is whole."""

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


class Unseen:
    """Of an answer in a format that says nothing we know."""

    def feed(self, chunk: bytes) -> Sequence[Observation]:
        return ()

    def finish(self) -> Sequence[Observation]:
        return ()


def observer(content_type: str, read: ReadAnswer) -> Observer:
    """The observer for an answer of this Content-Type."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "text/event-stream":
        return StreamObserver(read)
    return DocumentObserver(read) if kind == "application/json" or kind.endswith("+json") else Unseen()


def quietly(read: ReadAnswer, data: bytes) -> Iterator[Observation]:
    """What can be read; an answer is followed for statistics, and passes whatever it holds."""
    try:
        yield from read(data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return
