"""Input schemas without the arguments that are preset."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pegboard.model import JsonObject

JOINED = ("allOf", "anyOf", "oneOf")
CONDITIONS = frozenset(
    {"if", "then", "else", "not", "dependentRequired", "dependentSchemas", "dependencies", "minProperties"}
)
"""Rules over several arguments: with some of them out of sight, only the server can judge them."""


def without_arguments(schema: JsonObject, names: Collection[str]) -> JsonObject:
    """The schema of the other arguments. It may allow more than the server does, never less.

    >>> schema = {"properties": {"owner": {}, "title": {}}, "required": ["owner", "title"]}
    >>> without_arguments(schema, {"owner"})
    {'properties': {'title': {}}, 'required': ['title']}
    """
    return _without(schema, names, schema, frozenset())


def _without(schema: JsonObject, names: Collection[str], root: JsonObject, seen: frozenset[str]) -> JsonObject:
    if isinstance(reference := schema.get("$ref"), str):
        others = {key: value for key, value in schema.items() if key != "$ref"}
        target = {} if reference in seen else _referred(reference, root)
        return _without({**target, **others}, names, root, seen | {reference})
    kept: dict[str, Any] = {key: value for key, value in schema.items() if key not in CONDITIONS}
    if isinstance(properties := kept.get("properties"), Mapping):
        kept["properties"] = {name: each for name, each in properties.items() if name not in names}
    if isinstance(required := kept.get("required"), list):
        kept["required"] = [name for name in required if name not in names]
    for key in JOINED:
        if isinstance(branches := kept.get(key), list):
            kept[key] = [_without(each, names, root, seen) if isinstance(each, Mapping) else each for each in branches]
    if kept.get("oneOf") != schema.get("oneOf"):  # what told the branches apart may be gone
        kept["allOf"] = [*kept.get("allOf", []), {"anyOf": kept.pop("oneOf")}]
    return kept


def _referred(reference: str, root: JsonObject) -> JsonObject:
    """What a reference within the schema means; nothing, which allows everything, where it leads nowhere."""
    found: Any = root if reference.startswith("#") else None
    for step in filter(None, reference.removeprefix("#").split("/")):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}
