"""The gateway's texts for models: the definitions of the meta-tools, and the server instructions.

The meta-tools are list, search, describe and invoke (the lazy-loading PRD), or route, execute and report (EHRR).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pegboard.model import JsonObject, Server
from pegboard.protocols import TokenCounter
from pegboard.results.shape import READ
from pegboard.settings import Exposure

LIST_CATEGORIES = "list_tool_categories"
SEARCH = "search_tools"
DESCRIBE = "describe_tools"
INVOKE = "invoke_tool"
ROUTE = "route_tools"
EXECUTE = "execute_tool"
REPORT = "report_outcome"
RUN = "run_program"
FIND_SERVER = "find_server"
SEARCHING = (LIST_CATEGORIES, SEARCH, DESCRIBE, INVOKE)
ROUTING = (ROUTE, EXECUTE, REPORT)
META_TOOLS = frozenset({*SEARCHING, *ROUTING, READ, RUN, FIND_SERVER})
"""Reserved names: no other tool can have them, whether the meta-tools are listed or not."""
KINDS = ("tool", "prompt", "resource", "skill", "agent")
"""What a search can be for; without one, for all of them."""
DEFAULT_LIMIT = 5
MOST_RESULTS = 20
POOL = "\n\nAvailable:\n"
ALIASES: Mapping[str, str] = {"toolName": "name", "args": "arguments"}
"""What the lazy-loading PRD calls the arguments of `invoke_tool`."""
HINTS: Mapping[str, bool] = {
    "readOnlyHint": False,
    "destructiveHint": True,
    "idempotentHint": False,
    "openWorldHint": True,
}
"""Defaults for missing annotations (MCP 2025-11-25, ToolAnnotations)."""
FOUND_STATIC = f"Call what you find with {INVOKE}."
FOUND_DYNAMIC = f"Call what you find with {INVOKE}, or by its name once it is among your tools."
OF_MANY = "This server proxies other MCP servers."
OF_ONE = "Most tools of this server are not listed."
HOW_TO_SEARCH = f"Find their tools with {SEARCH}, then call them with {INVOKE}."
HOW_TO_SEARCH_ONE = f"Find them with {SEARCH}, then call them with {INVOKE}."
LEAST_TOKENS = 12
"""The shortest excerpt of a server's instructions that is worth including."""
CUT = "…"


def definitions(pool: str, *, dynamic: bool = False) -> list[JsonObject]:
    """The search meta-tools in fixed order, with the summary pool in the search tool's description (phase 1)."""
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
                "kind": {"type": "string", "enum": [*KINDS], "description": "Only this kind"},
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
                "arguments": {
                    "type": "object",
                    "description": "The tool's arguments, by its signature or schema",
                },
            },
            ["name"],
            read_only=False,
        ),
    ]


def routing_definitions() -> list[JsonObject]:
    """ROUTE and EXECUTE-TOOL (EHRR, algorithm 1), and the report that updates r_ij (eq. 8).

    The list of tools stays out of the prompt, as the PRD requires.
    """
    text = {"type": "string"}
    return [
        _definition(
            ROUTE,
            "Find the few tools that are worth calling for a subtask, by relevance, price, speed and reliability. Most "
            "tools are not listed: ask before you conclude that something cannot be done. Each comes with its "
            "schema, its price per call in USD, the expected seconds per call, its chance of success, and a "
            f"score (higher is better). Call the one you choose with {EXECUTE}. If no tool fits, the reason is given.",
            {
                "subtask": {
                    "type": "object",
                    "description": "What you need done next, without the values of arguments",
                    "properties": {
                        "text": text | {"description": "The subtask in one sentence", "minLength": 1},
                        "domain": text | {"description": "The field or service, e.g. maps, GitHub, finance"},
                        "operation": text | {"description": "The action, e.g. search, create, convert"},
                        "target": text | {"description": "The object, e.g. a place, an issue, an exchange rate"},
                    },
                    "required": ["text"],
                    "additionalProperties": False,
                },
                "max_price": {"type": "number", "minimum": 0, "description": "Maximum price of a call, in USD"},
                "deadline": {
                    "type": "number",
                    "exclusiveMinimum": 0,
                    "description": "Maximum duration of a call, in seconds",
                },
            },
            ["subtask"],
        ),
        _definition(
            EXECUTE,
            f"Call a tool that {ROUTE} offered. Its result is returned unchanged; a failure is returned with the "
            "other tools that were offered.",
            {
                "name": {"type": "string", "description": f"The tool's name, as returned by {ROUTE}"},
                "arguments": {"type": "object", "description": "The tool's arguments, according to its schema"},
            },
            ["name"],
            read_only=False,
        ),
        _definition(
            REPORT,
            "Report whether a tool's last result helped: a tool whose calls succeed but do not help is offered less "
            "often. Report once per call, soon after it.",
            {
                "name": {"type": "string", "description": "The name of the tool you called"},
                "useful": {"type": "boolean", "description": "Whether its last result helped"},
            },
            ["name", "useful"],
        ),
    ]


def finder_definition() -> JsonObject:
    """`find_server`, where a registry's snapshot is configured."""
    return _definition(
        FIND_SERVER,
        "Find MCP servers that are not installed here, by what you want to do, in a snapshot of a registry. Use it if "
        "no tool here fits. It only proposes: show the user the entry, and never add or start a server unasked.",
        {
            "query": {"type": "string", "minLength": 1, "maxLength": 2000, "description": "What the server should do"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 10},
        },
        ["query"],
    )


def program_definition(exposure: Exposure) -> JsonObject:
    """`run_program`, with where its functions are shown under this exposure."""
    searched = exposure not in ("eager", "native", "route")
    shown = f"as {SEARCH} shows them" if searched else "with the names and arguments that you see"
    return _definition(
        RUN,
        "Run a Python program that calls tools, where a task needs several calls or long results: only what it prints "
        f"comes back. Tools are async functions, {shown}: `r = await read_file(path='a.txt')`, several at once with "
        "asyncio.gather. JSON comes as dict or list, other texts as str; a tool's error is raised as RuntimeError. "
        "No files, no network, no packages; json, re, math, datetime and asyncio can be imported.",
        {"program": {"type": "string", "minLength": 1, "description": "Python with top-level await"}},
        ["program"],
        read_only=False,
    )


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
    """The arguments of a meta-tool, with the PRD's argument names replaced by Pegboard's."""
    if name != INVOKE or any(ours in arguments and theirs in arguments for theirs, ours in ALIASES.items()):
        return arguments
    return {ALIASES.get(key, key): value for key, value in arguments.items()}


def introduction(servers: Sequence[Server], exposure: Exposure, budget: int, counter: TokenCounter) -> str:
    """The instructions of a gateway in front of these servers; they name no tool that is not listed under ``exposure``.

    The instructions of a single server are kept whole. Those of several servers get headings and take at most
    ``budget`` tokens; what short ones leave unused is shared by the long ones.
    """
    if len(servers) == 1:
        return "\n\n".join(filter(None, [_usage(exposure, one=True), servers[0].instructions.strip()]))
    said = {server.name: server.instructions.strip() for server in servers if server.instructions.strip()}
    texts = [f"# {name}\n{text}" for name, text in said.items()]
    return "\n\n".join([_usage(exposure, one=False), *_shared(texts, budget, counter)])


def _usage(exposure: Exposure, *, one: bool) -> str:
    """Pegboard's own line; empty for a single server whose tools are all listed."""
    about = OF_ONE if one else OF_MANY
    if exposure in ("eager", "native"):
        return "" if one else about
    find = HOW_TO_SEARCH_ONE if one else HOW_TO_SEARCH
    return f"{about} {find.replace(SEARCH, ROUTE).replace(INVOKE, EXECUTE) if exposure == 'route' else find}"


def _shared(texts: Sequence[str], budget: int, counter: TokenCounter) -> list[str]:
    """The texts, cut to fit the budget, in their order."""
    counts = counter.count(list(texts))
    shares = shared_out(counts, budget)
    return [
        text if shares[at] >= counts[at] else counter.cut(text, shares[at] - 1).rstrip() + CUT
        for at, text in enumerate(texts)
        if shares[at] >= min(counts[at], LEAST_TOKENS)
    ]


def shared_out(counts: Sequence[int], budget: int) -> list[int]:
    """What each gets of a budget: what short ones leave unused is shared by the long ones.

    >>> shared_out([10, 100, 40], 90)
    [10, 40, 40]
    """
    shares = [0] * len(counts)
    left = max(0, budget)
    for place, at in enumerate(sorted(range(len(counts)), key=lambda at: counts[at])):
        shares[at] = min(counts[at], left // (len(counts) - place))
        left -= shares[at]
    return shares
