"""The tools that stand for all others: list categories, search, describe, invoke (seed 002; DESIGN §2.3), or route,
execute and report (seed 001)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard.model import JsonObject

LIST_CATEGORIES = "list_tool_categories"
SEARCH = "search_tools"
DESCRIBE = "describe_tools"
INVOKE = "invoke_tool"
ROUTE = "route_tools"
EXECUTE = "execute_tool"
REPORT = "report_outcome"
SEARCHING = (LIST_CATEGORIES, SEARCH, DESCRIBE, INVOKE)
ROUTING = (ROUTE, EXECUTE, REPORT)
META_TOOLS = frozenset({*SEARCHING, *ROUTING})
"""All of them, listed or not: no other tool goes by these names."""

DEFAULT_LIMIT = 5
MOST_RESULTS = 20

POOL = "\n\nAvailable:\n"

ALIASES: Mapping[str, str] = {"toolName": "name", "args": "arguments"}
"""What seed 002 calls the arguments of `invoke_tool`."""

HINTS: Mapping[str, bool] = {
    "readOnlyHint": False,
    "destructiveHint": True,
    "idempotentHint": False,
    "openWorldHint": True,
}
"""What a tool that does not say is taken for (MCP 2025-11-25, ToolAnnotations)."""

FOUND_STATIC = f"Call what you find with {INVOKE}."
FOUND_DYNAMIC = f"Call what you find with {INVOKE}, or by its name once it is among your tools."


def definitions(pool: str, *, dynamic: bool = False) -> list[JsonObject]:
    """Their definitions in fixed order, with the summary pool in the search tool's description (phase 1)."""
    return [
        _definition(
            LIST_CATEGORIES,
            "List the categories of tools that are available here, with the number of tools in each; "
            f"with a category, {'add its tools to yours' if dynamic else 'list its tools'}.",
            {"category": {"type": "string", "description": "Only this category, with its tools"}},
            [],
        ),
        _definition(
            SEARCH,
            "Find tools by what you want to do. Most tools here are not listed: search before you conclude that "
            f"something cannot be done. {FOUND_DYNAMIC if dynamic else FOUND_STATIC}"
            f"{f'{POOL}{pool}' if pool else ''}",
            {
                "query": {"type": "string", "description": "What you want to do, in a few words"},
                "limit": {"type": "integer", "minimum": 1, "maximum": MOST_RESULTS},
                "server": {"type": "string", "description": "Only tools of this server"},
                "category": {"type": "string", "description": "Only tools of this category"},
                "annotations": {
                    "type": "object",
                    "description": "Only tools with these hints",
                    "properties": {hint: {"type": "boolean"} for hint in HINTS},
                    "additionalProperties": False,
                },
            },
            ["query"],
        ),
        _definition(
            DESCRIBE,
            "Get the full definitions of tools, with the schemas of their arguments.",
            {
                "names": {
                    "type": "array",
                    "items": {"type": "string"},
                    "minItems": 1,
                    "maxItems": MOST_RESULTS,
                    "description": f"Names as {SEARCH} gives them",
                }
            },
            ["names"],
            read_only=True,
        ),
        _definition(
            INVOKE,
            "Call a tool that a search found. Its result comes back unchanged.",
            {
                "name": {"type": "string", "description": f"The tool's name as {SEARCH} gives it"},
                "arguments": {"type": "object", "description": "The tool's arguments, by its signature or schema"},
            },
            ["name"],
            read_only=False,
        ),
    ]


def routing_definitions() -> list[JsonObject]:
    """ROUTE and EXECUTE-TOOL (seed 001, algorithm 1), and the agent's verdict, of which its r_ij learns (eq. 8).

    What there is stays out of the prompt, as the seed has it.
    """
    text = {"type": "string"}
    return [
        _definition(
            ROUTE,
            "Find the few tools that are worth calling for a subtask, by relevance, price, speed and reliability. Most "
            "tools here are not listed: ask before you conclude that something cannot be done. Each comes with its "
            "schema, its price in USD a call, the seconds a call is expected to take, its chance of success, and a "
            f"score (higher is better). Call what you choose with {EXECUTE}. Where there is none, it says why.",
            {
                "subtask": {
                    "type": "object",
                    "description": "What you need done next, without the values of arguments",
                    "properties": {
                        "text": text | {"description": "The subtask in one sentence", "minLength": 1},
                        "domain": text | {"description": "The field or service, as: maps, GitHub, finance"},
                        "operation": text | {"description": "What is to be done, as: search, create, convert"},
                        "target": text | {"description": "To what, as: a place, an issue, an exchange rate"},
                    },
                    "required": ["text"],
                    "additionalProperties": False,
                },
                "max_price": {"type": "number", "minimum": 0, "description": "The most a call may cost, USD"},
                "deadline": {"type": "number", "exclusiveMinimum": 0, "description": "The most it may take, seconds"},
            },
            ["subtask"],
        ),
        _definition(
            EXECUTE,
            f"Call a tool that {ROUTE} offered. Its result comes back unchanged; a failure comes back as it is, with "
            "what else was offered.",
            {
                "name": {"type": "string", "description": f"The tool's name as {ROUTE} gives it"},
                "arguments": {"type": "object", "description": "The tool's arguments, by its schema"},
            },
            ["name"],
            read_only=False,
        ),
        _definition(
            REPORT,
            "Say that a result was of no use to you, though its tool did not fail: such tools are offered less. Once a "
            "call, soon after it.",
            {
                "name": {"type": "string", "description": "The name of the tool that you called"},
                "useful": {"type": "boolean", "description": "Whether its last result helped"},
            },
            ["name", "useful"],
        ),
    ]


def _definition(
    name: str, description: str, properties: dict[str, Any], required: list[str], *, read_only: bool = True
) -> JsonObject:
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {
        "name": name,
        "description": description,
        "inputSchema": schema if required else {key: value for key, value in schema.items() if key != "required"},
        "annotations": {"readOnlyHint": read_only, "openWorldHint": not read_only},
    }


def renamed(name: str, arguments: JsonObject) -> JsonObject:
    """The arguments of a meta-tool under its own names, where they came under those of seed 002."""
    if name != INVOKE or any(ours in arguments and theirs in arguments for theirs, ours in ALIASES.items()):
        return arguments
    return {ALIASES.get(key, key): value for key, value in arguments.items()}
