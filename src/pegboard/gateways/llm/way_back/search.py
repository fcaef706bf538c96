"""What the extra tool says of itself, and what the gateway answers to calls."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from pegboard.catalog import compact_json
from pegboard.errors import ToolNotAvailable
from pegboard.model import Tool
from pegboard.seams import TokenCounter

NAME = "search_tools"
ABOUT = (
    "Find more tools by what you want to do. Some of the tools you may use are not listed: search before you conclude "
    "that something cannot be done. What you find is added to your tools, and you then call it by its name."
)
FOUND = 5
"""Tools that one search brings back, at most."""


def own_name(taken: Collection[str]) -> str:
    """What ours is called where a caller's tool has its name.

    >>> own_name({"search_tools", "search_tools_2"})
    'search_tools_3'
    """
    number = 1
    name = NAME
    while name in taken:
        number += 1
        name = f"{NAME}_{number}"
    return name


def description(pool: str) -> str:
    return f"{ABOUT}\n\nNot listed:\n{pool}" if pool else ABOUT


def pool_of(tools: Sequence[Tool], counter: TokenCounter, budget: int | None) -> str:
    """A line for each tool, while that fits the budget of tokens; else their names; else as many names as fit."""
    for text in ("\n".join(tool.summary for tool in tools), _names(tools)):
        if budget is None or counter.count([text])[0] <= budget:
            return text
    kept = counter.cut(_names(tools), budget or 0)
    return kept.rpartition(", ")[0]


def found(tools: Iterable[Tool]) -> str:
    """The result of a search."""
    listed = [{"name": tool.name, "description": tool.description} for tool in tools]
    note = "They are among your tools now: call them by name." if listed else "Nothing else is there: say so, or go on."
    return compact_json({"found": listed, "note": note})


def nothing_asked() -> str:
    return compact_json({"found": [], "note": "Say in the query what you want to do."})


def not_found_now(reason: str) -> str:
    return compact_json({"found": [], "note": f"The search failed: {reason}. Go on without it."})


def shown_now(name: str) -> str:
    """The result of a call of a tool that was not listed, and is from now on."""
    note = f"{name!r} was not among your tools, so this call was not made. It is now: call it by its definition."
    return compact_json({"error": "tool_not_listed", "message": note, "tool": name})


def refused(name: str, available: Sequence[str], *, search: str) -> str:
    """The guard's word on a call of a tool that was not listed (seed 000 §5.5)."""
    remedy = "Call one of the available tools."
    if search:
        remedy = f"Call one of the available tools, or find others with {search!r}."
    payload: dict[str, Any] = ToolNotAvailable(name, available, remedy=remedy).payload()
    return json.dumps(payload, ensure_ascii=False)


def _names(tools: Sequence[Tool]) -> str:
    return ", ".join(tool.name for tool in tools)
