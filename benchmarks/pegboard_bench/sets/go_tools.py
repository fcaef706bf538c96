"""Tools that a Go source defines with mcp-go's `mcp.NewTool(…)`. Nothing is compiled: the calls are read as text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

WORD = re.compile(r'//[^\n]*|"(?:[^"\\]|\\.)*"|`[^`]*`|[\w.]+|\S')
CONSTANT = re.compile(r'^\s*(\w+)\s*=\s*("(?:[^"\\]|\\.)*")', re.MULTILINE)
START = "mcp.NewTool("
TYPES = {
    "WithString": "string",
    "WithBoolean": "boolean",
    "WithNumber": "number",
    "WithArray": "array",
    "WithObject": "object",
}
DEFAULTS = ("DefaultString", "DefaultBool", "DefaultNumber")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    name: str
    arguments: tuple[Any, ...]


def definitions(source: str) -> Iterator[tuple[str, str, Any]]:
    """Name, description and input schema of every tool, in the order of the source."""
    constants = {name: json.loads(text) for name, text in CONSTANT.findall(source)}
    for found in re.finditer(re.escape(START), source):
        words = (each[0] for each in WORD.finditer(source, found.start()) if not each[0].startswith("//"))
        call = _call(next(words) + next(words), words)
        name, *options = call.arguments
        yield constants.get(name, name), _description(options), _schema(options)


def _call(name: str, words: Iterator[str]) -> Call:
    """A call whose name and parenthesis were read."""
    arguments: list[Any] = []
    last: Any = None
    joined = False
    for word in words:
        if word in ",)":
            if last is not None:
                arguments.append(last)
            last = None
            if word == ")":
                break
        elif word == "(":
            last = _call(last, words)
        elif word == "+":
            joined = True
        else:
            last, joined = (last + _value(word), False) if joined else (_value(word), False)
    return Call(name=name.rstrip("(").rsplit(".", 1)[-1], arguments=tuple(arguments))


def _value(word: str) -> Any:
    if word.startswith("`"):
        return word.strip("`")
    if word.startswith('"') or word in {"true", "false"} or word.isdigit():
        return json.loads(word)
    return word


def _description(options: list[Any]) -> str:
    return next((str(each.arguments[0]) for each in options if each.name == "WithDescription"), "")


def _schema(options: list[Any]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    required = []
    for option in options:
        if option.name in TYPES:
            name, *details = option.arguments
            said = {each.name: each.arguments for each in details if isinstance(each, Call)}
            properties[name] = {"type": TYPES[option.name]}
            if "Description" in said:
                properties[name]["description"] = said["Description"][0]
            for default in DEFAULTS:
                if default in said:
                    properties[name]["default"] = said[default][0]
            if "Required" in said:
                required.append(name)
    return {"type": "object", "properties": properties, "required": required}
