"""Positions of values in a JSON text, so that parts can be removed while every other byte stays (P23)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from pegboard.errors import RequestNotUnderstood


class Span(NamedTuple):
    """A range of bytes from ``start`` to ``end``, exclusive."""

    start: int
    end: int


class Member(NamedTuple):
    """A member of an object, from the quote of its key to the end of its value, and the value's span."""

    start: int
    end: int
    value: Span


class Edit(NamedTuple):
    """Replaces the bytes from ``start`` to ``end`` by ``text``."""

    start: int
    end: int
    text: bytes = b""


OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
ARRAY = msgspec.json.Decoder(list[msgspec.Raw])
MOST_ITEMS = 20_000
"""The most members of one object or elements of one array: no request has as many fields or tools."""
BEGIN = re.compile(rb"[ \t\r\n]*[{\[][ \t\r\n]*")
KEY = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"[ \t\r\n]*:[ \t\r\n]*', re.DOTALL)
NEXT = re.compile(rb"[ \t\r\n]*,?[ \t\r\n]*")


def members(text: bytes, within: Span | None = None) -> dict[str, Member]:
    """The members of the object at ``within``, or of the whole text, in order.

    Raises RequestNotUnderstood for a repeated key: which of the values counts is undefined.
    """
    start, end = within or (0, len(text))
    found: dict[str, Member] = {}
    begin = BEGIN.match(text, start)
    place = begin.end() if begin else start
    decoded = OBJECT.decode(memoryview(text)[start:end])
    _check_number(len(decoded))
    for key, raw in decoded.items():
        value = bytes(raw)
        colon = KEY.match(text, place)
        if colon is None or not text.startswith(value, colon.end()):
            raise _repeated(key)
        span = Span(colon.end(), colon.end() + len(value))
        found[key] = Member(place, span.end, span)
        place = _next(text, span.end)
    if text[place : place + 1] != b"}":
        raise _repeated("of the last member")
    return found


def elements(text: bytes, within: Span) -> list[Span]:
    """The elements of the array at ``within``, in order."""
    begin = BEGIN.match(text, within.start)
    place = begin.end() if begin else within.start
    found = []
    decoded = ARRAY.decode(memoryview(text)[within.start : within.end])
    _check_number(len(decoded))
    for raw in decoded:
        end = place + memoryview(raw).nbytes
        found.append(Span(place, end))
        place = _next(text, end)
    return found


def cut(items: Sequence[Span | Member], keep: Sequence[bool]) -> list[Edit]:
    """The edits that remove all members of an object, or elements of an array, except those to ``keep``.

    Each kept item retains the whitespace before it; whatever is between it and removed items goes.
    """
    edits: list[Edit] = []
    first = next((place for place, kept in enumerate(keep) if kept), len(items))
    if first:
        edits.append(Edit(items[0].start, items[first].start if first < len(items) else items[-1].end))
    place = first
    while place < len(items):
        dropped = place
        while dropped < len(items) and not keep[dropped]:
            dropped += 1
        if dropped > place:
            edits.append(Edit(items[place - 1].end, items[dropped - 1].end))
        place = dropped + 1
    return edits


def cut_members(fields: Mapping[str, Member], names: Iterable[str]) -> list[Edit]:
    """The edits that remove these members from an object, if present."""
    going = set(names)
    return cut(list(fields.values()), [name not in going for name in fields])


def splice(text: bytes, edits: Iterable[Edit]) -> bytes:
    """The text with these edits, which must not overlap."""
    pieces: list[bytes] = []
    place = 0
    for edit in sorted(edits):
        pieces += (text[place : edit.start], edit.text)
        place = edit.end
    return b"".join([*pieces, text[place:]])


def _check_number(items: int) -> None:
    if items > MOST_ITEMS:
        raise RequestNotUnderstood(f"A part of the request has {items} items.", remedy=f"Send at most {MOST_ITEMS}.")


def _next(text: bytes, end: int) -> int:
    """The position of the next item or the closing bracket."""
    gap = NEXT.match(text, end)
    return gap.end() if gap else end


def _repeated(key: str) -> RequestNotUnderstood:
    return RequestNotUnderstood(
        f"An object of the request repeats a key, around {key!r}.", remedy="Send each key once."
    )
