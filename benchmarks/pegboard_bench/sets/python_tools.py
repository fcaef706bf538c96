"""Tools that Python sources define: literals of the MCP SDK's `Tool`, and functions that FastMCP makes tools of.

Nothing is imported or run: the sources are parsed.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from typing import Any

Definition = tuple[str, str, Any]
"""Name, description and input schema."""

TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array", "dict": "object"}
"""JSON types of annotations."""


def literals(source: bytes) -> Iterator[Definition]:
    """Every `Tool(name=…, description=…, inputSchema=…)` whose parts are literals, in the order of `ast.walk`."""
    for node in ast.walk(_parsed(source)):
        if isinstance(node, ast.Call) and _name(node.func) == "Tool":
            parts = {each.arg: each.value for each in node.keywords}
            try:
                yield tuple(ast.literal_eval(parts[part]) for part in ("name", "description", "inputSchema"))
            except (KeyError, ValueError, TypeError):
                continue


def functions(source: bytes) -> Iterator[Definition]:
    """Every function under `@….tool()`: its docstring is the description, its parameters are the schema."""
    for node in _parsed(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and any(map(_makes_tool, node.decorator_list)):
            yield node.name, inspect.cleandoc(ast.get_docstring(node) or ""), _schema(node.args)


def _parsed(source: bytes) -> ast.Module:
    """Nothing where the file is of another version of Python."""
    try:
        return ast.parse(source)
    except SyntaxError:
        return ast.Module(body=[], type_ignores=[])


def _name(called: ast.expr) -> str | None:
    """The last part of what is called."""
    return getattr(called, "attr", None) or getattr(called, "id", None)


def _makes_tool(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and _name(decorator.func) == "tool"


def _schema(arguments: ast.arguments) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    required = []
    defaults = [None] * (len(arguments.args) - len(arguments.defaults)) + list(arguments.defaults)
    for each, default in zip(arguments.args, defaults, strict=True):
        properties[each.arg] = _property(each.annotation)
        if default is None:
            required.append(each.arg)
        else:
            properties[each.arg]["default"] = ast.literal_eval(default)
    return {"type": "object", "properties": properties, "required": required}


def _property(annotation: ast.expr | None) -> dict[str, Any]:
    """The JSON schema of an annotation: a simple type, or an optional one."""
    if isinstance(annotation, ast.Subscript) and _name(annotation.value) == "Optional":
        return {"anyOf": [_property(annotation.slice), {"type": "null"}]}
    named = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    return {"type": TYPES.get((_name(named) if named else None) or "str", "string")}
