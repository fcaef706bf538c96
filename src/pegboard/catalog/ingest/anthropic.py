"""Tools as Anthropic Messages requests carry them."""

from __future__ import annotations

from collections.abc import Iterable

from pegboard.catalog.ingest._fields import mapping, optional_mapping, text, tool_name
from pegboard.model import JsonObject, Tool, ToolId


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
