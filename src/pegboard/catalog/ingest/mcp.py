"""Tools as MCP servers list them (`tools/list` results)."""

from __future__ import annotations

from collections.abc import Iterable

from pegboard.catalog.ingest._fields import mapping, optional_mapping, sequence, text, tool_name
from pegboard.model import JsonObject, Tool, ToolId

CATEGORY_KEYS = ("category", "pegboard/category", "io.pegboard/category")
"""Keys of `_meta`, in this order; then any vendor's, such as `example.com/category`."""
LONGEST_CATEGORY = 80


def tool_from_mcp(server: str, definition: JsonObject) -> Tool:
    """One entry of a `tools/list` result (MCP 2025-11-25, server/tools, data types)."""
    where = f"A tool of server {server!r}"
    name = tool_name(definition, where)
    where = f"Tool {name!r} of server {server!r}"
    meta = optional_mapping(definition.get("_meta"), f"{where}, _meta,") or {}
    return Tool(
        id=ToolId(server, name),
        title=text(definition.get("title")) or None,
        description=text(definition.get("description")),
        category=_category(meta),
        input_schema=optional_mapping(definition.get("inputSchema"), f"{where}, inputSchema,"),
        output_schema=optional_mapping(definition.get("outputSchema"), f"{where}, outputSchema,"),
        annotations=optional_mapping(definition.get("annotations"), f"{where}, annotations,"),
        definition=definition,
    )


def tools_from_list_result(server: str, pages: Iterable[object]) -> list[Tool]:
    """Tools of all pages of a listing; one repeated on a later page is kept once (M9)."""
    tools: dict[ToolId, Tool] = {}
    for page in pages:
        body = mapping(page, f"A tools/list answer of server {server!r}")
        body = mapping(body.get("result", body), f"The result of server {server!r}")
        for definition in sequence(body.get("tools"), f"'tools' of server {server!r}"):
            tool = tool_from_mcp(server, mapping(definition, f"A tool of server {server!r}"))
            tools.setdefault(tool.id, tool)
    return list(tools.values())


def _category(meta: JsonObject) -> str | None:
    """The category that a server states for its tool, on one line."""
    keys = (*CATEGORY_KEYS, *sorted(key for key in meta if key.endswith("/category")))
    stated = (" ".join(text(meta.get(key)).split())[:LONGEST_CATEGORY] for key in keys)
    return next(filter(None, stated), None)
