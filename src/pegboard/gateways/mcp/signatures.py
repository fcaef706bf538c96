"""Compact signatures: what a model needs to choose a tool, at a tenth of its schema's tokens."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pegboard.model import Tool

MOST_VALUES = 6
DEPTH = 2


def signature(name: str, tool: Tool) -> str:
    """The tool as a function; optional parameters carry a question mark.

    >>> from pegboard.testing import fake_tool
    >>> tool = fake_tool("add", schema={"properties": {"a": {"type": "number"}, "tags": {"type": "array",
    ...     "items": {"enum": ["x", "y"]}}}, "required": ["a"]})
    >>> signature("add", tool)
    'add(a: number, tags?: ("x" | "y")[])'
    """
    schema = tool.input_schema or {}
    return f"{name}({', '.join(_parameters(schema, DEPTH))})"


def _parameters(schema: Mapping[str, Any], depth: int) -> list[str]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return []
    required = schema.get("required") or ()
    ordered = sorted(properties.items(), key=lambda item: item[0] not in required)
    return [f"{name}{'' if name in required else '?'}: {_type(of, depth)}" for name, of in ordered]


def _type(schema: object, depth: int) -> str:
    if not isinstance(schema, Mapping):
        return "any"
    if "const" in schema:
        return _literal(schema["const"])
    if isinstance(schema.get("enum"), list):
        return _any_of([_literal(value) for value in schema["enum"][:MOST_VALUES]], len(schema["enum"]) > MOST_VALUES)
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            return _any_of([_type(each, depth) for each in schema[key]], more=False)
    kind = schema.get("type")
    if isinstance(kind, list):
        return _any_of([_type({**schema, "type": each}, depth) for each in kind], more=False)
    if kind == "array":
        item = _type(schema.get("items"), depth)
        return f"({item})[]" if " | " in item else f"{item}[]"
    if kind == "object" and depth and isinstance(schema.get("properties"), Mapping):
        return f"{{{', '.join(_parameters(schema, depth - 1))}}}"
    return str(kind) if isinstance(kind, str) else "any"


def _any_of(types: list[str], more: bool) -> str:
    return " | ".join([*dict.fromkeys(types), *(["…"] if more else [])])


def _literal(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
