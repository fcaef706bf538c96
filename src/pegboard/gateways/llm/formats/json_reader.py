"""Reads untrusted JSON: all failures become one error."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from pegboard.errors import RequestNotUnderstood
from pegboard.gateways.llm.formats.json_spans import Member

MOST_VALUES = 2_000_000
"""The most values in a body: as Python objects they take several times the memory of their text."""


def check_values(body: bytes) -> None:
    """Raises RequestNotUnderstood for a body with too many values; similar characters in texts count, too."""
    values = sum(map(body.count, (b",", b"{", b"["))) if len(body) > MOST_VALUES else 0
    if values > MOST_VALUES:
        raise RequestNotUnderstood(f"The request may hold {values} values.", remedy=f"Send at most {MOST_VALUES}.")


@contextmanager
def understanding() -> Iterator[None]:
    """Turns any error about a body into RequestNotUnderstood."""
    try:
        yield
    except RecursionError:
        raise RequestNotUnderstood("The request is nested too deeply.", remedy="Reduce the nesting.") from None
    except (msgspec.MsgspecError, ValueError) as error:
        raise RequestNotUnderstood(
            f"The request cannot be read: {_short(error)}.", remedy="Check its format."
        ) from None


def read(text: bytes | memoryview) -> Any:
    """Any JSON value; numbers that msgspec cannot hold are read by Python."""
    try:
        return msgspec.json.decode(text)
    except msgspec.ValidationError:
        return json.loads(bytes(text))


def value_of(body: bytes, fields: Mapping[str, Member], name: str) -> Any:
    """The value of a member; None if it is missing."""
    if name not in fields:
        return None
    start, end = fields[name].value
    return read(memoryview(body)[start:end])


def place_of(value: Any) -> int | None:
    """A place in a list, as the events of a stream have it; None for anything else."""
    return value if isinstance(value, int) else None


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def object_of(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def objects_of(value: object) -> list[Mapping[str, Any]]:
    """The objects of an array, or a single object in place of an array."""
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict)]


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200].rstrip(".")
