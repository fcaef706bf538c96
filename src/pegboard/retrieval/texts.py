"""The texts of a tool that are matched against a query."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from pegboard.model import Server, Tool
from pegboard.retrieval.words import split_identifier

TextKind = Literal["summary", "definition"]


def summary(tool: Tool) -> str:
    """s_i of seed 000: name and a description of at most 60 tokens."""
    return tool.summary


def name_and_description(tool: Tool) -> str:
    """`"<name>: <description>"`, as seed 003 embeds a tool; the name alone where there is no description (P16)."""
    return f"{tool.name}: {tool.description}" if tool.description else tool.name


def server_profile(server: Server) -> str:
    return f"{server.name}: {server.description or server.instructions}".rstrip(": ")


TEXTS: Mapping[TextKind, Callable[[Tool], str]] = {"summary": summary, "definition": name_and_description}


def fields(tool: Tool, server: Server | None) -> dict[str, str]:
    """The fields of BM25F."""
    return {
        "name": " ".join((tool.name, tool.title or "", *tool.aliases)),
        "description": tool.description,
        "parameters": " ".join(parameter_words(tool)),
        "server": " ".join((tool.server, tool.category or "", server.description if server else "")),
    }


def parameter_words(tool: Tool) -> Iterable[str]:
    """Parameter names, their descriptions and enum values, one level deep."""
    properties = (tool.input_schema or {}).get("properties")
    if not isinstance(properties, Mapping):
        return
    for name, schema in properties.items():
        yield split_identifier(str(name))
        if isinstance(schema, Mapping):
            yield from _described(schema)


def _described(schema: Mapping[str, Any]) -> Iterable[str]:
    if isinstance(schema.get("description"), str):
        yield schema["description"]
    if isinstance(schema.get("enum"), list):
        yield " ".join(str(value) for value in schema["enum"])
