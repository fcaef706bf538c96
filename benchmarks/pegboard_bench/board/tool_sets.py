"""Tools for boards of any size: real ones where data is at hand, else made ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pegboard.catalog.ingest import read_catalog
from pegboard.evaluation.datasets import CATALOG
from pegboard.model import Tool, ToolId

REAL = "mcp_large"
"""A catalog of 9,812 tools."""
THINGS = ("issue", "branch", "invoice", "event", "contact", "file", "table", "chart", "flight", "route", "sensor")
VERBS = ("create", "list", "get", "update", "delete", "search", "export", "archive", "share", "copy", "merge")
TOOLS_PER_SERVER = 12


def tools_of(data: Path | None, size: int) -> list[Tool]:
    """``size`` tools, real ones first."""
    found = [] if data is None else list(read_catalog(data / REAL / CATALOG).tools[:size])
    return found + made(size - len(found))


def made(size: int) -> list[Tool]:
    return [_made(place) for place in range(size)]


def _made(place: int) -> Tool:
    verb, thing = VERBS[place % len(VERBS)], THINGS[place // len(VERBS) % len(THINGS)]
    number = place // (len(VERBS) * len(THINGS))
    name = f"{verb}_{thing}_{number}"
    description = f"{verb.capitalize()}s the {thing} of the department with the number {number}."
    schema = {"type": "object", "properties": {f"{thing}_id": {"type": "string", "description": f"Which {thing}"}}}
    return Tool(
        id=ToolId(f"server{place // TOOLS_PER_SERVER}", name),
        description=description,
        input_schema=schema,
        definition={"name": name, "description": description, "inputSchema": schema},
    )


def new_tool(number: int, sentence: str = "is high") -> dict[str, str]:
    """A tool that no catalog has."""
    return {"name": f"tide_table_{number}", "description": f"When the tide {sentence} at harbour number {number}"}


def as_json(tools: Sequence[Tool]) -> list[dict[str, object]]:
    """Names, descriptions and schemas, for a program of another environment."""
    return [
        {"name": str(tool.id), "description": tool.description, "schema": tool.input_schema or {"type": "object"}}
        for tool in tools
    ]
