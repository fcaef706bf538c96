"""Tools that no task needs: of public servers, as a snapshot of a fleet of them has them."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping

from pegboard.model import Tool
from pegboard_bench.fleet.snapshot import catalog

COUNT = 128
SEED = 20261124


def distractors(count: int, servers: Collection[str], names: Collection[str]) -> Mapping[str, list[Tool]]:
    """So many tools, drawn over all servers but these, none of which has one of these names."""
    candidates = [tool for tool in catalog().tools if tool.id.server not in servers and tool.id.name not in names]
    drawn: dict[str, list[Tool]] = {}
    taken: set[str] = set()
    for tool in random.Random(SEED).sample(candidates, len(candidates)):  # noqa: S311
        if len(taken) < count and tool.id.name not in taken:
            taken.add(tool.id.name)
            drawn.setdefault(tool.id.server, []).append(tool)
    return dict(sorted(drawn.items()))


def definition(tool: Tool) -> dict[str, object]:
    """As MCP lists it."""
    return {"name": tool.id.name, "description": tool.description, "inputSchema": dict(tool.input_schema or {})}
