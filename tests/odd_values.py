"""JSON with one value replaced or missing, as a provider that errs may send it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

ODD = (None, "x", -1, 3.5, [], {})
Event = tuple[str, Any]
"""The name and the data of an event."""


def spoilt(value: Any) -> Iterator[Any]:
    """The value with each part of it, at any depth, replaced by each of `ODD`, or left out."""
    if not isinstance(value, dict | list):
        return
    parts = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    for at, part in parts:
        for other in (*ODD, *spoilt(part)):
            yield _with(value, at, other)
        yield _without(value, at)


def spoilt_events(events: Sequence[Event]) -> Iterator[list[Event]]:
    """The events with one of them `spoilt`."""
    for place, (name, data) in enumerate(events):
        for other in spoilt(data):
            yield [*events[:place], (name, other), *events[place + 1 :]]


def _with(value: Any, at: Any, part: Any) -> Any:
    if isinstance(value, dict):
        return {**value, at: part}
    return [*value[:at], part, *value[at + 1 :]]


def _without(value: Any, at: Any) -> Any:
    if isinstance(value, dict):
        return {name: part for name, part in value.items() if name != at}
    return [*value[:at], *value[at + 1 :]]
