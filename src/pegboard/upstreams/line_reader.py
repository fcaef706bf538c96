"""Cuts a server's output into lines, and replaces lines that cannot be parsed by errors for the request they answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

import mcp_types as types
from mcp.shared.message import SessionMessage

ENDS_BYTES = 4096
_ID = rb'"id"\s*:\s*(-?\d{1,18}|"(?:[^"\\]|\\.)*")\s*'
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"\s*'
FIRST = re.compile(rb"\s*\{\s*(?:" + _VERSION + rb",\s*)?" + _ID + rb"[,}]")
LAST = re.compile(rb"[,{]\s*" + _ID + rb"(?:,\s*" + _VERSION + rb")?\}\s*$")
ASKS = re.compile(rb"\s*\{\s*(?:(?:" + _VERSION + rb"|" + _ID + rb"),\s*)*" + rb'"method"\s*:')
UNPARSED = "Failed to parse JSON response: "
"""The prefix that the SDK's HTTP transport uses."""


@dataclass(frozen=True, slots=True)
class TooLong:
    """A dropped message of ``size`` bytes. ``id`` is the request that it answers, None if unknown."""

    size: int
    id: int | str | None


class LineReader:
    """Splits bytes at line feeds in linear time, keeping at most ``limit`` bytes of a line; of a longer one, both
    ends."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._ends: tuple[bytes, bytes] | None = None

    def feed(self, data: bytes) -> Iterator[bytes | TooLong]:
        """The lines that end in ``data``, without line feeds."""
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


class Unattributable(Exception):  # noqa: N818
    """A message that is too large and whose request is unknown, so that the connection cannot be used any more."""


@dataclass(frozen=True, slots=True)
class Size:
    """The data of our own error, which no server can send."""

    bytes: int
    limit: int


def answered(head: bytes, tail: bytes) -> int | str | None:
    """The id of a JSON-RPC answer, from its first and last bytes. All SDKs write the id first or last.

    The last brace closes the message itself, so a member right before it belongs to the message.

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


def too_large(line: TooLong, limit: int, option: str = "result_limit") -> SessionMessage | Exception:
    """The error that replaces a dropped message."""
    text = f"It sent {line.size:,} bytes in one message, but {limit:,} are allowed ({option})"
    if line.id is None:
        return Unattributable(text)
    return _failure(line.id, types.ErrorData(code=types.INTERNAL_ERROR, message=text, data=Size(line.size, limit)))


def list_too_large(whose: int | str | None, reason: Exception) -> SessionMessage:
    """The error that replaces a list answer that is not parsed."""
    return _failure(whose, types.ErrorData(code=types.INTERNAL_ERROR, message=f"It cannot be listed: {reason}"))


def malformed(line: bytes, error: Exception) -> SessionMessage | Exception:
    """The error that replaces an invalid line. If its id is known, the call fails at once instead of timing out."""
    name = answered(line[:ENDS_BYTES], line[-ENDS_BYTES:])
    if name is None or b'"jsonrpc"' not in line[:ENDS_BYTES] + line[-ENDS_BYTES:]:
        return error
    return _failure(name, types.ErrorData(code=types.PARSE_ERROR, message=f"{UNPARSED}it is not a JSON-RPC response"))


def _failure(name: int | str | None, error: types.ErrorData) -> SessionMessage:
    return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=name, error=error))
