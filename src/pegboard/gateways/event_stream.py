"""Parses server-sent events from chunks of any size."""

from __future__ import annotations

import re
from collections.abc import Iterator

MOST_HELD = 16 * 1024 * 1024
"""Bytes of one event or document that are buffered; longer ones are skipped."""
LINE_END = re.compile(rb"\r\n|\n|\r")


class EventLines:
    """The data of server-sent events, from chunks of any size (WHATWG HTML, 9.2.6)."""

    def __init__(self, most: int = MOST_HELD) -> None:
        self._most = most
        self._line: list[bytes] = []
        self._held = 0
        self._data: list[bytes] = []
        self._after_return = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The data of each event that this chunk completes."""
        if self._after_return and chunk:  # the line feed of a split CRLF
            chunk, self._after_return = chunk.removeprefix(b"\n"), False
        place = 0
        for end in LINE_END.finditer(chunk):
            self._hold(chunk[place : end.start()])
            place = end.end()
            yield from self._end_line()
        self._hold(chunk[place:])
        self._after_return = chunk.endswith(b"\r")

    def finish(self) -> Iterator[bytes]:
        """The data of an unfinished event: some servers omit the last empty line."""
        if self._line:
            yield from self._end_line()
        yield from self._end_event()

    def _hold(self, piece: bytes) -> None:
        self._held += len(piece)
        if piece and self._held <= self._most:
            self._line.append(piece)

    def _end_line(self) -> Iterator[bytes]:
        line = b"".join(self._line)
        self._line.clear()
        if not line and self._held <= self._most:
            yield from self._end_event()
        elif not line:
            self._held, self._data = 0, []
        elif line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))

    def _end_event(self) -> Iterator[bytes]:
        data, self._data = b"\n".join(self._data), []
        if data and self._held <= self._most:
            yield data
        self._held = 0
