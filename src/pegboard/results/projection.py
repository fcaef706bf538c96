"""A value with the fields alone that its tool's output schema names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard.model import JsonObject
from pegboard.results.json_tables import SomeRows

DEEPEST = 12


def projected(value: Any, schema: JsonObject) -> Any:
    """The value without the fields that the schema does not name. Where the schema says nothing of fields, or allows
    more of a type, all stay.

    >>> projected({"id": 7, "etag": "x"}, {"type": "object", "properties": {"id": {"type": "integer"}}})
    {'id': 7}
    """
    return _projected(value, schema, schema, 0)


def _projected(value: Any, schema: Any, root: JsonObject, depth: int) -> Any:
    schema = _followed(schema, root)
    if depth > DEEPEST or not isinstance(schema, Mapping):
        return value
    if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        rows = [_projected(each, schema["items"], root, depth + 1) for each in value]
        return value.changed(rows) if isinstance(value, SomeRows) else rows
    named = schema.get("properties")
    if not isinstance(value, dict) or not isinstance(named, Mapping) or schema.get("additionalProperties"):
        return value
    if any(key in schema for key in ("anyOf", "oneOf", "allOf", "patternProperties")) or named.keys().isdisjoint(value):
        return value
    return {key: _projected(each, named[key], root, depth + 1) for key, each in value.items() if key in named}


def _followed(schema: Any, root: JsonObject) -> Any:
    """What a reference within the schema refers to."""
    for _ in range(DEEPEST):
        reference = schema.get("$ref") if isinstance(schema, Mapping) else None
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return schema
        schema = root
        for part in reference[2:].split("/"):
            schema = schema.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(schema, Mapping) else None
    return schema
