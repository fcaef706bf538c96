"""Reading JSON that others wrote: everything that cannot be read ends in one error, and nothing is looked at twice."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from pegboard.errors import RequestNotUnderstood
from pegboard.gateways.llm.spans import Member

SURROGATE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair
    rb"|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
    rb"|\\.",
    re.DOTALL,
)
MOST_VALUES = 2_000_000
"""Values of a body that are read: as Python objects they take many times the memory that they took as text."""
REPLACEMENT = rb"\ufffd"
"""U+FFFD as an escape: as long as the escape of half a character, so that every other byte keeps its place."""


MOST_ESCAPES = 200_000
"""Escapes that are looked through for halves of characters."""


def check_values(body: bytes) -> None:
    """Raises RequestNotUnderstood for a body of more values than any request has; text that looks like them counts."""
    values = sum(map(body.count, (b",", b"{", b"["))) if len(body) > MOST_VALUES else 0
    if values > MOST_VALUES:
        raise RequestNotUnderstood(f"The request may hold {values} values.", remedy=f"Send at most {MOST_VALUES}.")


@contextmanager
def understanding() -> Iterator[None]:
    """Whatever is wrong with a body becomes RequestNotUnderstood."""
    try:
        yield
    except RecursionError:
        raise RequestNotUnderstood("The request is nested too deeply.", remedy="Send it less deeply nested.") from None
    except (msgspec.MsgspecError, ValueError) as error:
        raise RequestNotUnderstood(
            f"The request cannot be read: {_short(error)}.", remedy="Check its format."
        ) from None


def readable(body: bytes) -> bytes:
    """The body, with a replacement for each half of a surrogate pair, which JSON can hold and no text can.

    Every byte that stays is where it was. Clients that cut a text in the middle of an emoji send such halves.
    """
    if body.count(b"\\") > MOST_ESCAPES:
        return body
    if b"\\ud" not in body and b"\\uD" not in body:
        return body
    return SURROGATE.sub(lambda match: REPLACEMENT if match["lone"] else match[0], body)


def read(text: bytes | memoryview) -> Any:
    """Any JSON value; numbers beyond what msgspec holds are read as Python does."""
    try:
        return msgspec.json.decode(text)
    except msgspec.ValidationError:
        return json.loads(bytes(text))


def value_of(body: bytes, fields: Mapping[str, Member], name: str) -> Any:
    """What a member holds; None where it is not there."""
    if name not in fields:
        return None
    start, end = fields[name].value
    return read(memoryview(body)[start:end])


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def object_of(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def objects_of(value: object) -> list[Mapping[str, Any]]:
    """The objects of an array, or the one object that stands where an array should."""
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict)]


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200].rstrip(".")
