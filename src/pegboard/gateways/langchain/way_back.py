"""The way back: a tool with which the model finds the tools that its turn left out.

What a search found is in its message, so that any process can go on with a conversation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count, islice
from typing import Any

from langchain_core.messages import AnyMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool

from pegboard.catalog import Catalog, summarize
from pegboard.gateways.llm.tool_search import tool as texts
from pegboard.model import Decision, Tool, ToolId

SEARCH_TOKENS = 600
"""Tokens for the tools that the search lists, as the LLM gateway's ``search_tokens``."""
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": "What you want to do, in a few words"}},
    "required": ["query"],
}
NAME = re.compile(r"[^\s,:()\[\]]+")
WORDS = ("auto", "any", "required")
"""What ``tool_choice`` may say beside a search. A request that names its tools, or wants none, needs no other."""


def search_tool(name: str, left_out: Sequence[Tool], pool: str, catalog: Catalog) -> BaseTool:
    """The tool as the model sees it, with the tools that it can find and that the summary pool does not name. The gate
    answers its calls."""

    def uncalled(query: str) -> str:
        raise NotImplementedError(f"The gate answers {name!r}.")

    said = frozenset(NAME.findall(pool))
    unsaid = [tool for tool in left_out if tool.name not in said]
    listed = texts.pool_of(unsaid[: SEARCH_TOKENS // 2], catalog.counter, SEARCH_TOKENS)  # a name is two tokens or more
    return StructuredTool(name=name, description=texts.description(listed), args_schema=dict(SCHEMA), func=uncalled)


def free_name(taken: Collection[str]) -> str:
    """`search_tools`, or with a number behind it where a tool has that name.

    >>> free_name({"search_tools"})
    'search_tools_2'
    """
    names = (texts.NAME if number == 1 else f"{texts.NAME}_{number}" for number in count(1))
    return next(name for name in names if name not in taken)


def may_search(choice: Any) -> bool:
    """Whether a request with this ``tool_choice`` leaves the model a search."""
    return choice is None or choice is True or choice in WORDS


def left_out(decision: Decision, catalog: Catalog) -> list[Tool]:
    """The tools that a search may find, in catalog order, each under the name by which the model calls it. Those that
    the caller may not use now are not among them."""
    missing = frozenset(decision.reachable) - frozenset(decision.active)
    return [_called(tool, decision, catalog) for tool in catalog.tools if tool.id in missing]


def found(decision: Decision, catalog: Catalog, active: Collection[ToolId]) -> str:
    """The result of a search that this decision ranks, for a model that has the ``active`` tools."""
    reachable = frozenset(decision.reachable)
    best = (each.tool for each in decision.candidates if each.score > 0)
    new = (tool for tool in best if tool in reachable and tool not in active)
    return texts.found([_called(catalog[tool], decision, catalog) for tool in islice(new, texts.FOUND)])


def found_before(messages: Sequence[AnyMessage], search: str) -> list[str]:
    """The names of the tools that searches of a conversation found, each once, in order."""
    return list(dict.fromkeys(name for each in messages for name in _names(each, search)))


def _names(message: AnyMessage, search: str) -> Iterator[str]:
    if not isinstance(message, ToolMessage) or message.name != search or not isinstance(message.content, str):
        return
    try:
        said = json.loads(message.content)
    except (ValueError, RecursionError):
        return
    found = said.get("found") if isinstance(said, dict) else None
    for each in found if isinstance(found, list) else ():
        if isinstance(each, dict) and isinstance(each.get("name"), str):
            yield each["name"]


def _called(tool: Tool, decision: Decision, catalog: Catalog) -> Tool:
    name = decision.name_of(tool.id)
    if name == tool.name:
        return tool
    named = replace(tool, id=ToolId(tool.server, name))
    return replace(named, summary=summarize(named, catalog.counter))
