"""What the model is told: of `call_tool`, of the tools it may call by it, and of calls that were not made. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from pegboard.catalog import compact_json
from pegboard.model import Tool
from pegboard.seams import TokenCounter

NAME = "call_tool"
ABOUT = (
    "Calls one of the tools that are listed here: `name` is its name, and `arguments` are its own arguments. "
    "The definitions of tools come with the user's messages once they fit what is asked. A tool whose definition you "
    "have not seen may be called too: where its arguments do not fit, you get its definition, and call it again."
)
SHOWN = "Definitions of tools, to be called by {}:"


def own_name(taken: Collection[str]) -> str:
    """What ours is called where a caller's tool has its name.

    >>> own_name({"call_tool"})
    'call_tool_2'
    """
    number, name = 1, NAME
    while name in taken:
        number += 1
        name = f"{NAME}_{number}"
    return name


def description(tools: Sequence[Tool], counter: TokenCounter, budget: int | None) -> str:
    """With phase 1: a line for each tool while that fits the budget of tokens, else the names.

    Names are never left out: what is not there cannot be called.
    """
    lines = "\n".join(tool.summary for tool in tools)
    fits = budget is None or counter.count([lines])[0] <= budget
    return f"{ABOUT}\n\nTools:\n{lines if fits else ', '.join(tool.name for tool in tools)}"


def definition(tool: Tool) -> str:
    """Phase 2 of one tool, on one line."""
    said = {"name": tool.name, "description": tool.description, "parameters": tool.input_schema or {"type": "object"}}
    return compact_json(said)


def shown(definitions: Iterable[str], own: str) -> str:
    """What comes right before a message of the user's."""
    return "\n".join(["<tools>", SHOWN.format(own), *definitions, "</tools>"])


def without_name(own: str) -> str:
    """The answer to a call that names no tool."""
    note = f"No tool was called: {own} takes the name of a tool as `name` and its arguments as `arguments`."
    return compact_json({"error": "tool_not_named", "message": note})


def not_fitting(tools: Iterable[Tool], problems: Sequence[str]) -> str:
    """The answer to a call whose arguments do not fit: the definition."""
    note = "The call was not made, for its arguments do not fit. This is the tool's definition: call it again."
    listed = [
        {"name": tool.name, "description": tool.description, "parameters": tool.input_schema or {"type": "object"}}
        for tool in tools
    ]
    return compact_json({"error": "tool_not_listed", "message": note, "problems": problems, "tools": listed})
