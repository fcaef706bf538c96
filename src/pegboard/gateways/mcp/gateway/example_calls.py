"""How a tool is called, for models: an example call with placeholders, and a compact signature."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pegboard.catalog import compact_json
from pegboard.gateways.mcp.gateway.meta_definitions import EXECUTE, INVOKE
from pegboard.model import JsonObject, Tool
from pegboard.settings import Exposure

EXAMPLE_DEPTH = 4
MOST_PARAMETERS = 20
GIVEN = ("const", "default")
LISTS = ("enum", "examples")
BRANCHES = ("anyOf", "oneOf", "allOf")
BY_TYPE: Mapping[str, Any] = {"boolean": True, "null": None}
MOST_VALUES = 6
SIGNATURE_DEPTH = 2


def example_calls(tools: Mapping[str, Tool], exposure: Exposure) -> list[JsonObject]:
    """A complete call of each of these tools, by the names that the client knows them by: the `params` of `tools/call`.

    Clients refuse names that are not in their list, and list again only after they have read an answer; so tools that
    are not listed are called through a meta-tool.
    """
    calls: list[JsonObject] = [{"name": name, "arguments": example_arguments(tool)} for name, tool in tools.items()]
    if exposure in ("eager", "native"):
        return calls
    return [{"name": _through(exposure), "arguments": call} for call in calls]


def _through(exposure: Exposure) -> str:
    return EXECUTE if exposure == "route" else INVOKE


def how_to_call(name: str, tool: Tool, exposure: Exposure) -> str:
    """One line on how to call the tools of an answer; ``tool`` is the first of them.

    Clients refuse names that are not in their list, and list again only after they have read this answer.
    """
    if exposure in ("eager", "native"):
        return "These tools are in your list: call them by their names."
    example = compact_json({"name": name, "arguments": example_arguments(tool)})
    later = " Once a tool is in your list, call it by its name." if exposure == "dynamic" else ""
    return f"Call {_through(exposure)} with {example}.{later}"


def example_arguments(tool: Tool) -> dict[str, Any]:
    """Values for the required arguments, from their types, defaults and enumerations.

    >>> from pegboard.testing import fake_tool
    >>> example_arguments(fake_tool("add", schema={"properties": {"a": {"type": "number"}, "note": {}},
    ...     "required": ["a"]}))
    {'a': 1}
    """
    schema = tool.input_schema or {}
    return _object(schema, schema, EXAMPLE_DEPTH)


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
    """The target of a reference within the schema, such as `#/$defs/NAME`; None for any other."""
    if not reference.startswith("#/"):
        return None
    found: object = root
    for key in reference[2:].split("/"):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def signature(name: str, tool: Tool) -> str:
    """The tool as a function signature; optional parameters have a question mark.

    >>> from pegboard.testing import fake_tool
    >>> tool = fake_tool("add", schema={"properties": {"a": {"type": "number"}, "tags": {"type": "array",
    ...     "items": {"enum": ["x", "y"]}}}, "required": ["a"]})
    >>> signature("add", tool)
    'add(a: number, tags?: ("x" | "y")[])'
    """
    schema = tool.input_schema or {}
    return f"{name}({', '.join(_parameters(schema, SIGNATURE_DEPTH))})"


def _parameters(schema: Mapping[str, Any], depth: int) -> list[str]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return []
    required = schema.get("required")
    if not isinstance(required, list):  # drafts before 4 have a flag here
        required = []
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
