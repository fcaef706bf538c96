"""Texts for the model: about `call_tool`, the tools it can call with it, and calls that were not made. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pegboard.catalog import compact_json
from pegboard.catalog.name_lines import how_to_read, name_lines
from pegboard.model import Tool
from pegboard.protocols import TokenCounter

NAME = "call_tool"
ABOUT = (
    "Calls one of the tools listed here: `name` is the tool's name, and `arguments` are the tool's own arguments. "
    "Definitions of matching tools come with the user's messages. You may also call a tool whose definition you "
    "have not seen: if the arguments do not fit, you get its definition and can call it again."
)
SHOWN = "Definitions of tools, to be called with {}:"


def description(tools: Sequence[Tool], counter: TokenCounter, budget: int | None) -> str:
    """The description with phase 1: a line per tool if that fits the token budget, else the names, in few tokens.

    Names are never left out: a model cannot call what it does not see.
    """
    lines = "\n".join(tool.summary for tool in tools)
    if budget is None or counter.count([lines])[0] <= budget:
        return f"{ABOUT}\n\nTools:\n{lines}"
    names = name_lines([tool.name for tool in tools])
    return f"{ABOUT}\n\nTools{how_to_read(names)}:\n{names}"


def definition(tool: Tool) -> str:
    """Phase 2 of one tool: its definition on one line."""
    said = {"name": tool.name, "description": tool.description, "parameters": tool.input_schema or {"type": "object"}}
    return compact_json(said)


def shown(definitions: Iterable[str], own: str) -> str:
    """The text directly before a user's message."""
    return "\n".join(["<tools>", SHOWN.format(own), *definitions, "</tools>"])


def without_name(own: str) -> str:
    """The answer to a call that names no tool."""
    note = f"No tool was called: pass the name of a tool as `name` and its arguments as `arguments` to {own}."
    return compact_json({"error": "tool_not_named", "message": note})


def not_json(own: str) -> str:
    """The answer to a call whose input cannot be read."""
    note = f"No tool was called: the input of {own} is no valid JSON object. Correct it and call {own} again."
    return compact_json({"error": "input_not_json", "message": note})


def not_fitting(tools: Iterable[Tool], problems: Sequence[str]) -> str:
    """The answer to a call whose arguments do not fit: the definition."""
    note = "The call was not made because its arguments do not fit. Here is the tool's definition: call it again."
    listed = [
        {"name": tool.name, "description": tool.description, "parameters": tool.input_schema or {"type": "object"}}
        for tool in tools
    ]
    return compact_json({"error": "tool_not_listed", "message": note, "problems": problems, "tools": listed})
