"""Tools as OpenAI requests carry them: nested (Chat Completions) or flat (Responses)."""

from __future__ import annotations

from collections.abc import Iterable

from pegboard.catalog.ingest._fields import mapping, optional_mapping, text, tool_name
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
