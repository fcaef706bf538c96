"""Haystack: hooks of an `Agent`, before each model call and before its calls of tools.

The list of a step's tools, which hooks are given, is all that the two share: what it lacks was left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard.adapters.selection import SEARCH_ABOUT, SEARCH_SCHEMA, SEARCH_TOOLS, ToolSelector, TurnTools
from pegboard.extras import required

required("haystack.hooks", "haystack")

from haystack.tools import Tool  # noqa: E402


class SelectBeforeModel:
    """Leaves the tools of the turn in a step."""

    allowed_hook_points = ("before_llm",)

    def __init__(self, selector: ToolSelector) -> None:
        self._selector = selector

    def run(self, state: Any) -> None:
        tools, said = state.data["tools"], state.data["messages"]
        self._show(tools, self._selector.select_now(tools, said, state))

    async def run_async(self, state: Any) -> None:
        tools, said = state.data["tools"], state.data["messages"]
        self._show(tools, await self._selector.select(tools, said, state))

    def _show(self, tools: list[Tool], turn: TurnTools[Tool]) -> None:
        tools[:] = [*turn.tools, *([self._search_tool(turn)] if turn.has_search else ())]

    def _search_tool(self, turn: TurnTools[Tool]) -> Tool:
        def search(query: str) -> str:
            return self._selector.search_now(turn, query).text

        return Tool(name=SEARCH_TOOLS, description=SEARCH_ABOUT, parameters=dict(SEARCH_SCHEMA), function=search)


class GateBeforeTools:
    """Answers calls of tools that the step does not have."""

    allowed_hook_points = ("before_tool",)

    def run(self, state: Any) -> None:
        tools: list[Tool] = state.data["tools"]
        names = frozenset(tool.name for tool in tools)
        shown: TurnTools[Tool] = TurnTools(tools=tuple(tools), names=names)
        called = dict.fromkeys(each.tool_name for each in state.data["messages"][-1].tool_calls)
        tools += [_refusing(name, shown.refusal(name) or "") for name in called if name not in names]


def pegboard_hooks(selector: ToolSelector | None = None) -> Mapping[str, list[Any]]:
    """The ``hooks`` of an `Agent`: its model is shown the tools of each step, calls of others are refused, and
    `search_tools` is offered. One set of hooks may serve several agents."""
    return {
        "before_llm": [SelectBeforeModel((selector or ToolSelector()).reading(once=True))],
        "before_tool": [GateBeforeTools()],
    }


def _refusing(name: str, refusal: str) -> Tool:
    """A tool in the place of one that was left out."""
    return Tool(name=name, description=name, parameters={"type": "object"}, function=lambda **_: refusal)
