"""Tools as requests to OpenAI (Chat Completions, Responses), Anthropic Messages, Gemini and Bedrock carry them."""

from __future__ import annotations

from collections.abc import Iterable

from pegboard.catalog.ingest._fields import mapping, optional_mapping, sequence, text, tool_name
from pegboard.model import JsonObject, Tool, ToolId


def tool_from_openai(server: str, entry: JsonObject) -> Tool | None:
    """A function or custom tool; None for a hosted one (web search, MCP connector), which has nothing to rank (P15)."""
    kind = entry.get("type", "function")
    if kind not in ("function", "custom"):
        return None
    function = mapping(entry.get(kind, entry), f"{kind!r} of an OpenAI tool")
    name = tool_name(function, "An OpenAI tool")
    return Tool(
        id=ToolId(server, name),
        description=text(function.get("description")),
        input_schema=optional_mapping(function.get("parameters"), f"Tool {name!r}, parameters,"),
        definition=entry,
    )


def tools_from_openai(server: str, entries: Iterable[object]) -> list[Tool]:
    tools = (tool_from_openai(server, mapping(entry, "An OpenAI tool")) for entry in entries)
    return [tool for tool in tools if tool is not None]


def tool_from_anthropic(server: str, entry: JsonObject) -> Tool | None:
    """A client tool, or None for a server tool such as `web_search_20250305`, which carries no schema (P15)."""
    if entry.get("type", "custom") != "custom":
        return None
    name = tool_name(entry, "An Anthropic tool")
    return Tool(
        id=ToolId(server, name),
        description=text(entry.get("description")),
        input_schema=optional_mapping(entry.get("input_schema"), f"Tool {name!r}, input_schema,"),
        definition=entry,
    )


def tools_from_anthropic(server: str, entries: Iterable[object]) -> list[Tool]:
    tools = (tool_from_anthropic(server, mapping(entry, "An Anthropic tool")) for entry in entries)
    return [tool for tool in tools if tool is not None]


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


def tool_from_bedrock(server: str, entry: JsonObject) -> Tool | None:
    """A tool of Converse; None for a tool of the system or a cache point, which have nothing to rank (P15)."""
    if "toolSpec" not in entry:
        return None
    specification = mapping(entry["toolSpec"], "'toolSpec' of a Bedrock tool")
    name = tool_name(specification, "A Bedrock tool")
    schema = mapping(specification.get("inputSchema") or {}, f"Tool {name!r}, inputSchema,")
    return Tool(
        id=ToolId(server, name),
        description=text(specification.get("description")),
        input_schema=optional_mapping(schema.get("json"), f"Tool {name!r}, inputSchema.json,"),
        definition=entry,
    )
