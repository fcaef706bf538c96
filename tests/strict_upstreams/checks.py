"""What several providers refuse."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any


def repeated(names: Iterable[str]) -> Iterator[str]:
    for name, times in Counter(names).items():
        if times > 1:
            yield f"tools: the name {name!r} is there {times} times"


def badly_named(names: Iterable[object], pattern: str) -> Iterator[str]:
    for name in names:
        if not isinstance(name, str) or not re.fullmatch(pattern, name):
            yield f"tools: the name {name!r} does not match {pattern}"


def unfit_schema(name: str, schema: object, *, required: bool) -> Iterator[str]:
    if schema is None:
        if required:
            yield f"tools: {name!r} has no schema"
    elif not isinstance(schema, Mapping):
        yield f"tools: the schema of {name!r} is no object"
    elif required and schema.get("type") != "object":
        yield f"tools: the schema of {name!r} has the type {schema.get('type')!r}"


def listed(body: Mapping[str, Any], field: str) -> tuple[list[Any], list[str]]:
    """The array of a field, and what is wrong with it; an absent one is empty and right."""
    if field not in body:
        return [], []
    value = body[field]
    if not isinstance(value, Sequence) or isinstance(value, str):
        return [], [f"{field}: {value!r} is not an array"]
    return list(value), [] if value else [f"{field}: [] is too short"]


def without_tools(body: Mapping[str, Any], fields: Iterable[str]) -> Iterator[str]:
    for field in fields:
        if field in body:
            yield f"{field} is only allowed when tools are specified"
