"""Catalogs as JSON lines, one tool a line: `{"server", "server_description", "name", "description",
"input_schema"}`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from pegboard.catalog.ingest._fields import mapping, optional_mapping, text, tool_name
from pegboard.errors import CatalogError
from pegboard.model import Server, ServerName, Tool, ToolId


def tool_from_row(row: object, where: str) -> Tool:
    fields = mapping(row, where)
    server, name = fields.get("server"), tool_name(fields, where)
    if not isinstance(server, str) or not server:
        raise CatalogError(f"{where} has the server {server!r}.", remedy="Every line needs a string as its server.")
    schema = optional_mapping(fields.get("input_schema", fields.get("inputSchema")), f"{where}, input_schema,")
    definition = {
        "name": name,
        "description": text(fields.get("description")),
        "inputSchema": schema or {"type": "object"},
    }
    return Tool(
        id=ToolId(server, name),
        description=text(fields.get("description")),
        category=text(fields.get("category")) or None,
        input_schema=schema,
        definition=definition,
    )


def servers_from_jsonl(lines: Iterable[str], source: str) -> list[tuple[Server, list[Tool]]]:
    """Servers in order of appearance, tools in line order. Errors name the file and the line."""
    return servers_from_rows(_rows(lines, source))


def servers_from_rows(rows: Iterable[tuple[str, object]]) -> list[tuple[Server, list[Tool]]]:
    """The same from rows that were read, each with the place that errors name. A tool named twice is kept once."""
    groups: dict[str, tuple[Server, dict[ToolId, Tool]]] = {}
    for where, row in rows:
        tool = tool_from_row(row, where)
        server = Server(name=ServerName(tool.server), description=text(mapping(row, where).get("server_description")))
        groups.setdefault(tool.server, (server, {}))[1].setdefault(tool.id, tool)
    return [(server, list(tools.values())) for server, tools in groups.values()]


def _rows(lines: Iterable[str], source: str) -> Iterator[tuple[str, object]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{source}, line {number},"
        try:
            yield where, json.loads(line)
        except ValueError as error:
            raise CatalogError(
                f"{where} is not JSON: {error}.", remedy="One JSON object a line is expected."
            ) from error
