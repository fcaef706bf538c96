"""How to call what was found: a call that a model can take as it stands, with placeholders for what it knows itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard.catalog import compact_json
from pegboard.gateways.mcp.meta_tools import EXECUTE, INVOKE
from pegboard.model import Tool
from pegboard.settings import Exposure

DEPTH = 4
MOST_PARAMETERS = 20
GIVEN = ("const", "default")
LISTS = ("enum", "examples")
BRANCHES = ("anyOf", "oneOf", "allOf")
BY_TYPE: Mapping[str, Any] = {"boolean": True, "null": None}


def how_to_call(name: str, tool: Tool, exposure: Exposure) -> str:
    """One line on how the tools of an answer are called, of which this is the first.

    Clients refuse names that are not in their list, and list again only after they have read this answer.
    """
    if exposure in ("eager", "native"):
        return "These tools are in your list: call them by their names."
    example = compact_json({"name": name, "arguments": example_arguments(tool)})
    later = " Once a tool is in your list, call it by its name." if exposure == "dynamic" else ""
    return f"Call {EXECUTE if exposure == 'route' else INVOKE} with {example}.{later}"


def example_arguments(tool: Tool) -> dict[str, Any]:
    """Values for the required arguments, as their types, defaults and enumerations have them.

    >>> from pegboard.testing import fake_tool
    >>> example_arguments(fake_tool("add", schema={"properties": {"a": {"type": "number"}, "note": {}},
    ...     "required": ["a"]}))
    {'a': 1}
    """
    schema = tool.input_schema or {}
    return _object(schema, schema, DEPTH)


def _object(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, Mapping) or not isinstance(required, list):
        return {}
    wanted = [name for name in required if isinstance(name, str) and name in properties][:MOST_PARAMETERS]
    return {name: _value(properties[name], root, depth, name) for name in wanted}


def _value(schema: object, root: Mapping[str, Any], depth: int, name: str) -> Any:
    placeholder = f"<{name}>"
    if not isinstance(schema, Mapping) or not depth:
        return placeholder
    for key in GIVEN:
        if key in schema:
            return schema[key]
    for key in LISTS:
        if isinstance(schema.get(key), list) and schema[key]:
            return schema[key][0]
    reference = schema.get("$ref")
    if isinstance(reference, str):
        return _value(_referred(reference, root), root, depth - 1, name)
    for key in BRANCHES:
        if isinstance(schema.get(key), list) and schema[key]:
            return _value(schema[key][0], root, depth - 1, name)
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind in ("integer", "number"):
        return schema.get("minimum", 1)
    if kind == "array":
        return [_value(schema.get("items"), root, depth - 1, name)]
    if kind == "object":
        return _object(schema, root, depth - 1)
    return BY_TYPE.get(kind, placeholder) if isinstance(kind, str) else placeholder


def _referred(reference: str, root: Mapping[str, Any]) -> object:
    """What stands at a place of the same schema, as `#/$defs/NAME`; None for any other place."""
    if not reference.startswith("#/"):
        return None
    found: object = root
    for key in reference[2:].split("/"):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found
