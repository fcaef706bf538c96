"""Server-sent events as they were sent, each whole, and what every joiner does with them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pegboard.errors import UpstreamError
from pegboard.gateways.event_stream import MOST_HELD, EventLines

END = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")
LONGEST_END = 4


class Frames:
    """Cuts a stream into its events, of which no byte is lost."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, piece: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Each event that this piece ends: its bytes, and its data. Raises UpstreamError for one without an end."""
        searched = max(0, len(self._held) - LONGEST_END)
        self._held += piece
        begin = 0
        for end in END.finditer(self._held, searched):
            yield _event(self._held[begin : end.end()])
            begin = end.end()
        self._held = self._held[begin:]
        if len(self._held) > MOST_HELD:
            raise UpstreamError("", f"An event of the answer has more than {MOST_HELD:,} bytes.")

    def finish(self) -> Iterator[tuple[bytes, bytes]]:
        """The event that nothing ended, if there is one."""
        held, self._held = self._held, b""
        if held:
            yield _event(held)


def _event(raw: bytes) -> tuple[bytes, bytes]:
    lines = EventLines()
    return raw, b"\n".join([*lines.feed(raw), *lines.finish()])
