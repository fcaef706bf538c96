"""The search tool's description, and the gateway's answers to its calls."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, cast

from pegboard.catalog import compact_json
from pegboard.catalog.name_lines import name_lines_within
from pegboard.errors import ToolNotAvailable
from pegboard.model import Tool
from pegboard.protocols import TokenCounter

NAME = "search_tools"
ABOUT = (
    "Find more tools by describing what you want to do. Some tools you may use are not listed: search before you "
    "conclude that something cannot be done. Tools that are found are added to your tools; then call them by name."
)
FOUND = 5
"""The most tools that one search finds."""
POOLS = 64
"""Lists of tools that are not shown whose lines are remembered: a conversation's next request has the same, mostly."""
MOST_REMEMBERED = 32 * 1024
"""The most characters of each of them: what callers send is not kept without a limit."""
ITEMS = (
    "It also finds skills (instructions for a kind of work), agents, prompts and resources, and says how to read them: "
    "read what fits before you begin."
)


def description(pool: str, items: Sequence[str] | None = None) -> str:
    """``items`` are lines for those that are likely; None if a search finds nothing but tools."""
    parts = [ABOUT, f"Not listed:\n{pool}" if pool else "", "" if items is None else "\n".join([ITEMS, *items])]
    return "\n\n".join(filter(None, parts))


def pool_of(tools: Sequence[Tool], counter: TokenCounter, budget: int | None) -> str:
    """A line per tool if that fits the token budget; else the names, those with the same beginning in a line, and
    long lines cut (`name_lines_within`)."""
    summaries, names = tuple(tool.summary for tool in tools), tuple(tool.name for tool in tools)
    made = _pool if sum(map(len, (*summaries, *names))) <= MOST_REMEMBERED else _pool.__wrapped__
    return made(summaries, names, cast("Hashable", counter), budget)


@lru_cache(maxsize=POOLS)
def _pool(summaries: tuple[str, ...], names: tuple[str, ...], by: Hashable, budget: int | None) -> str:
    counter = cast("TokenCounter", by)
    whole = "\n".join(summaries)
    if budget is None or counter.count([whole])[0] <= budget:
        return whole
    return name_lines_within(names, counter, budget)


def tokens_of(text: str, counter: TokenCounter) -> int:
    """Of the search tool's name and description, which the next request has again, mostly."""
    return (_tokens if len(text) <= MOST_REMEMBERED else _tokens.__wrapped__)(text, cast("Hashable", counter))


@lru_cache(maxsize=POOLS)
def _tokens(text: str, by: Hashable) -> int:
    return cast("TokenCounter", by).count([text])[0]


def found(tools: Iterable[Tool], items: Mapping[str, Any] = MappingProxyType({})) -> str:
    """The result of a search; ``items`` are what it found besides tools, by kind."""
    listed = [{"name": tool.name, "description": tool.description} for tool in tools]
    none = "There are no other tools." if items else "There are no other tools: say so, or go on."
    note = "They are now among your tools: call them by name." if listed else none
    return compact_json({"found": listed, **items, "note": note})


def not_answered() -> str:
    """The result of a call that was made beside others and could not be answered."""
    return compact_json({"note": "This call was not answered. Make it again if you still need it."})


def nothing_asked() -> str:
    return compact_json({"found": [], "note": "Describe in the query what you want to do."})


def not_found_now(reason: str) -> str:
    return compact_json({"found": [], "note": f"The search failed: {reason}. Go on without it."})


def shown_now(name: str) -> str:
    """The result of a call of a tool that was not listed and is listed from now on."""
    note = (
        f"{name!r} was not among your tools, so the call was not made. It is now: call it again as its definition says."
    )
    return compact_json({"error": "tool_not_listed", "message": note, "tool": name})


def refused(name: str, available: Sequence[str], *, search: str) -> str:
    """The guard's answer to a call of a tool that was not listed (Tool Attention §5.5)."""
    remedy = "Call one of the available tools."
    if search:
        remedy = f"Call one of the available tools, or find others with {search!r}."
    payload: dict[str, Any] = ToolNotAvailable(name, available, remedy=remedy).payload()
    return json.dumps(payload, ensure_ascii=False)
