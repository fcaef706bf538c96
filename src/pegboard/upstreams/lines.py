"""What a server writes, cut into lines; of one that is too long only the ends are kept, which say whom it answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

ENDS_BYTES = 4096

_ID = rb'"id"\s*:\s*(-?\d{1,18}|"(?:[^"\\]|\\.)*")\s*'
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"\s*'
FIRST = re.compile(rb"\s*\{\s*(?:" + _VERSION + rb",\s*)?" + _ID + rb"[,}]")
LAST = re.compile(rb"[,{]\s*" + _ID + rb"(?:,\s*" + _VERSION + rb")?\}\s*$")
ASKS = re.compile(rb"\s*\{\s*(?:(?:" + _VERSION + rb"|" + _ID + rb"),\s*)*" + rb'"method"\s*:')


@dataclass(frozen=True, slots=True)
class TooLong:
    """A message of ``size`` bytes that was not kept. ``id`` is whose answer it is, None where that cannot be told."""

    size: int
    id: int | str | None


class Lines:
    """Cuts bytes at line feeds, in time that grows with their number; memory is bounded by ``limit`` bytes a line."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._ends: tuple[bytes, bytes] | None = None

    def feed(self, data: bytes) -> Iterator[bytes | TooLong]:
        """The lines that end in ``data``, without their ends."""
        *ended, rest = data.split(b"\n")
        for part in ended:
            self._add(part)
            yield self._taken()
        self._add(rest)

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._ends is not None:
            self._ends = self._ends[0], (self._ends[1] + part)[-ENDS_BYTES:]
            return
        self._parts.append(part)
        if self._size > self._limit:
            whole = b"".join(self._parts)
            self._ends = whole[:ENDS_BYTES], whole[-ENDS_BYTES:]
            self._parts.clear()

    def _taken(self) -> bytes | TooLong:
        line = b"".join(self._parts) if self._ends is None else TooLong(self._size, answered(*self._ends))
        self._parts, self._size, self._ends = [], 0, None
        return line


def answered(head: bytes, tail: bytes) -> int | str | None:
    """The id in a JSON-RPC answer of which only the ends are known: it stands first, or last, as all SDKs write it.

    The last brace of a message closes the message itself, so a member that stands right before it is the message's own.

    >>> answered(b'{"jsonrpc":"2.0","id":7,"result":{', b'}}')
    7
    >>> answered(b'{"result":{', b'},"jsonrpc":"2.0","id":"seven"}')
    'seven'
    """
    if ASKS.match(head):
        return None
    found = FIRST.match(head) or LAST.search(tail)
    if found is None:
        return None
    name: int | str = json.loads(found.group(1))
    return name
