"""A tool as a typed Python function: what a model reads before it writes a program, and what the program is checked
against before it runs."""

from __future__ import annotations

import json
import keyword
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pegboard.model import JsonObject, Tool

DEPTH = 3
MOST_VALUES = 8
MOST_FIELDS = 20
SHAPE = 400
"""Most characters of the shape of a result."""
PLAIN: Mapping[str, str] = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "array": "list",
    "object": "dict",
}
CHECK_HEAD = "from typing import Any, Literal\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """``named`` is whether Python can name it; others are given as ``**{"odd-name": value}``."""

    name: str
    annotation: str
    required: bool

    @property
    def named(self) -> bool:
        return self.name.isidentifier() and not keyword.iskeyword(self.name)


def parameters(schema: JsonObject | None) -> list[Parameter]:
    """The arguments of a tool, the required ones first, in the order of its schema."""
    properties = (schema or {}).get("properties")
    if not isinstance(properties, Mapping):
        return []
    required = (schema or {}).get("required")
    wanted = (
        frozenset(name for name in required if isinstance(name, str)) if isinstance(required, list) else frozenset()
    )
    found = [
        Parameter(name=name, annotation=annotation(of, schema or {}), required=name in wanted)
        for name, of in properties.items()
    ]
    return sorted(found, key=lambda each: not each.required)


def stub(function: str, tool: Tool) -> str:
    """The function as a model reads it, with the shape of its result where the tool says it.

    >>> from pegboard.testing import fake_tool
    >>> tool = fake_tool("add", schema={"properties": {"a": {"type": "number"}, "unit": {"enum": ["m", "km"]}},
    ...     "required": ["a"]})
    >>> stub("add", tool)
    "async def add(a: float, unit: Literal['m', 'km'] = ...)"
    """
    found = parameters(tool.input_schema)
    odd = [_declared(each, json.dumps(each.name)) for each in found if not each.named]
    arguments = ", ".join([*_named(found), *([f"**{{{', '.join(odd)}}}"] if odd else [])])
    shape = result_shape(tool.output_schema)
    return f"async def {function}({arguments})" + (f" -> {shape}" if shape else "")


def check_stub(function: str, tool: Tool) -> str:
    """The function as the program is checked against it: nothing is said of its result, which servers describe as
    they like."""
    found = parameters(tool.input_schema)
    arguments = ", ".join(_named(found))
    known = (tool.input_schema or {}).get("additionalProperties", True) is False
    odd = any(not each.named for each in found)
    more = "" if known and not odd else f"{', ' if arguments else ''}**more: Any"
    return f"async def {function}({arguments}{more}) -> Any: ..."


def result_shape(schema: JsonObject | None) -> str:
    """The shape of a result in the notation of Python's literals and types; empty if nothing is known.

    >>> result_shape({"type": "object", "properties": {"items": {"type": "array", "items": {"type": "integer"}}}})
    '{"items": list[int]}'
    """
    if not schema:
        return ""
    text = _shape(schema, schema, DEPTH)
    return text if len(text) <= SHAPE else f"{text[:SHAPE]}…"


def annotation(schema: object, root: Mapping[str, Any], depth: int = DEPTH) -> str:
    """The Python type of a JSON schema; `Any` for what has no simple one."""
    if not isinstance(schema, Mapping) or depth < 0:
        return "Any"
    if isinstance(schema.get("$ref"), str):
        return annotation(_referred(schema["$ref"], root), root, depth - 1)
    if "const" in schema:
        return _literal([schema["const"]])
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return _literal(schema["enum"])
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            return _union(schema[key], lambda each: annotation(each, root, depth - 1))
    kind = schema.get("type")
    if isinstance(kind, list):
        return _union(kind, lambda each: annotation({**schema, "type": each}, root, depth - 1))
    if kind == "array":
        item = annotation(schema.get("items"), root, depth - 1)
        return "list" if item == "Any" else f"list[{item}]"
    return PLAIN.get(kind, "Any") if isinstance(kind, str) else "Any"


def _named(found: Iterable[Parameter]) -> list[str]:
    return [_declared(each, each.name) for each in found if each.named]


def _declared(parameter: Parameter, name: str) -> str:
    return f"{name}: {parameter.annotation}{'' if parameter.required else ' = ...'}"


def _shape(schema: object, root: Mapping[str, Any], depth: int) -> str:
    if not isinstance(schema, Mapping) or depth < 0:
        return "Any"
    if isinstance(schema.get("$ref"), str):
        return _shape(_referred(schema["$ref"], root), root, depth - 1)
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and properties and depth:
        shown = islice(properties.items(), MOST_FIELDS)
        fields = [f"{json.dumps(name)}: {_shape(of, root, depth - 1)}" for name, of in shown]
        more = ["…"] if len(properties) > MOST_FIELDS else []
        return f"{{{', '.join([*fields, *more])}}}"
    if schema.get("type") == "array":
        item = _shape(schema.get("items"), root, depth - 1)
        return "list" if item == "Any" else f"list[{item}]"
    return annotation(schema, root, depth)


def _referred(reference: str, root: Mapping[str, Any]) -> object:
    found: object = root
    if not reference.startswith("#/"):
        return None
    for key in reference[2:].split("/"):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def _literal(values: list[Any]) -> str:
    if len(values) > MOST_VALUES or not all(value is None or isinstance(value, str | int | bool) for value in values):
        kinds = {type(value) for value in values}
        return kinds.pop().__name__ if len(kinds) == 1 and kinds <= {str, int, bool, float} else "Any"
    return f"Literal[{', '.join(map(repr, values))}]"


def _union(options: list[Any], annotated: Callable[[Any], str]) -> str:
    """`Any` for many options: each may refer to all others."""
    found = list(dict.fromkeys(map(annotated, options))) if len(options) <= MOST_VALUES else []
    return "Any" if "Any" in found or not found else " | ".join(found)
