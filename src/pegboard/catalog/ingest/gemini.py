"""Tools as Gemini requests carry them: groups of function declarations beside hosted tools."""

from __future__ import annotations

from collections.abc import Iterable

from pegboard.catalog.ingest._fields import mapping, optional_mapping, sequence, text, tool_name
from pegboard.model import JsonObject, Tool, ToolId


def tool_from_gemini(server: str, declaration: JsonObject) -> Tool:
    name = tool_name(declaration, "A Gemini function declaration")
    schema = declaration.get("parametersJsonSchema", declaration.get("parameters"))
    return Tool(
        id=ToolId(server, name),
        description=text(declaration.get("description")),
        input_schema=optional_mapping(schema, f"Tool {name!r}, parameters,"),
        definition=declaration,
    )


def tools_from_gemini(server: str, entries: Iterable[object]) -> list[Tool]:
    """Declarations of every group, in either spelling; groups without any (`googleSearch`) are hosted tools (P15)."""
    tools: list[Tool] = []
    for entry in entries:
        group = mapping(entry, "A Gemini tool")
        declarations = group.get("functionDeclarations", group.get("function_declarations")) or []
        tools.extend(
            tool_from_gemini(server, mapping(declaration, "A Gemini function declaration"))
            for declaration in sequence(declarations, "'functionDeclarations'")
        )
    return tools
