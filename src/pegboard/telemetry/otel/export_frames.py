"""What a gateway tells its exporter process: frames of MessagePack, each with its length before it."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, BinaryIO, NamedTuple

import msgspec

HEADER = struct.Struct(">I")
LEAST, GREATEST = -(2**63), 2**63 - 1
"""The integers of OTLP."""
TAKEN, MISSED = b"\1", b"\0"
"""What the exporter process answers: whether the collector took all of a frame."""


class SpanRecord(NamedTuple):
    """Times are nanoseconds since the epoch; ``links`` are trace and span ids."""

    name: str
    kind: str
    trace_id: bytes
    span_id: bytes
    parent: bytes
    state: str
    start: int
    end: int
    attributes: dict[str, Any]
    error: str
    message: str
    links: list[tuple[bytes, bytes]]


class LogRecord(NamedTuple):
    """An event: ``values`` are as `log_values` has them; ``warns`` is its severity."""

    kind: str
    values: tuple[Any, ...]
    warns: bool
    trace_id: bytes
    span_id: bytes


class ExportFrame(msgspec.Struct, kw_only=True):
    """The first one has ``setup``. ``metrics`` are as `Histograms.metrics` has them, since ``began`` until ``now``.

    ``lost`` counts the records that found no room since the last frame."""

    setup: dict[str, Any] | None = None
    spans: list[tuple[Any, ...]] = []
    logs: list[tuple[Any, ...]] = []
    metrics: list[list[Any]] = []
    began: int = 0
    now: int = 0
    lost: int = 0


def written(frame: ExportFrame) -> bytes:
    """A client's texts may have halves of surrogate pairs, and its numbers any length: these are replaced."""
    try:
        body = msgspec.msgpack.encode(frame)
    except (UnicodeEncodeError, OverflowError):
        body = msgspec.msgpack.encode(_sendable(msgspec.structs.asdict(frame)))
    return HEADER.pack(len(body)) + body


def read(stream: BinaryIO) -> ExportFrame | None:
    """The next frame; None at the end.

    >>> import io
    >>> read(io.BytesIO(written(ExportFrame(lost=2)))).lost
    2
    """
    head = stream.read(HEADER.size)
    if len(head) < HEADER.size:
        return None
    body = stream.read(HEADER.unpack(head)[0])
    return msgspec.msgpack.decode(body, type=ExportFrame)


def within_range(attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes with the nearest integers that OTLP has: MessagePack has those up to 2**64, too.

    >>> within_range({"size": 2**63, "name": "x"})
    {'size': 9223372036854775807, 'name': 'x'}
    """
    if any(isinstance(value, list) or (isinstance(value, int) and value > GREATEST) for value in attributes.values()):
        return {name: _sendable(value) for name, value in attributes.items()}
    return attributes


def _sendable(value: Any) -> Any:
    """The value with "?" for each half of a surrogate pair, and the nearest integers that OTLP has.

    >>> _sendable({"a\\ud800": (True, 2**70)})
    {'a?': [True, 9223372036854775807]}
    """
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case bool():
            return value
        case int():
            return min(max(value, LEAST), GREATEST)
        case Mapping():
            return {_sendable(key): _sendable(each) for key, each in value.items()}
        case list() | tuple():
            return [_sendable(each) for each in value]
        case _:
            return value
