"""smolagents: a `ToolCallingAgent` that selects before each step and checks each call.

smolagents has no hook for a step's tools; the agent's property that lists them is one. Agents that it manages, and
`final_answer`, are never left out. A `CodeAgent` writes code instead of calls, which no gate can look into.
"""

from __future__ import annotations

from typing import Any

from pegboard.adapters.selection import SEARCH_ABOUT, SEARCH_SCHEMA, SEARCH_TOOLS, ToolSelector, TurnTools
from pegboard.extras import required
from pegboard.library.framework_tools import FrameworkTool, framework_tool
from pegboard.protection import kind_of

required("smolagents", "smolagents")

from smolagents import ActionStep, MultiStepAgent, Tool, ToolCallingAgent  # noqa: E402


class TurnSearch(Tool):
    """`search_tools` as its model sees it; the agent answers it."""

    name = SEARCH_TOOLS
    description = SEARCH_ABOUT
    inputs = {"query": dict(SEARCH_SCHEMA["properties"]["query"])}  # noqa: RUF012 - what smolagents reads
    output_type = "string"

    def forward(self, query: str) -> str:
        return query


class PegboardToolCallingAgent(ToolCallingAgent):
    """Shows its model the tools of each step, refuses calls of others, and offers `search_tools`."""

    def __init__(self, tools: list[Any], model: Any, *, selector: ToolSelector | None = None, **fields: Any) -> None:
        self._selector = (selector or ToolSelector()).reading(_read, once=True)
        self._search = TurnSearch()
        self._turn: TurnTools[Any] | None = None
        self._found: list[str] = []
        super().__init__(tools=tools, model=model, **fields)

    def initialize_system_prompt(self) -> str:
        """The instructions name no tools but those that are never left out: the others come with each step."""
        every: dict[str, Any] = dict(vars(self)["tools"])
        self.tools = {name: tool for name, tool in every.items() if kind_of(name)}
        try:
            return str(super().initialize_system_prompt())
        finally:
            self.tools = every

    @property
    def tools_and_managed_agents(self) -> list[Any]:
        """Those of the next step. Before the first step of a conversation, searches have found nothing."""
        every = list(super().tools_and_managed_agents)
        if not any(isinstance(step, ActionStep) for step in self.memory.steps):
            self._found.clear()
        said = self.write_memory_to_messages()
        turn = self._selector.select_now(every, said, self, found=self._found)
        self._turn = turn
        return [*turn.tools, *([self._search] if turn.has_search else ())]

    def execute_tool_call(self, tool_name: str, arguments: Any) -> Any:
        """The result of the tool, the error for a tool that the step does not have, or what a search found."""
        turn = self._turn
        if turn is None or turn.board is None or tool_name in self.managed_agents:
            return super().execute_tool_call(tool_name, arguments)
        if (refusal := turn.refusal(tool_name)) is not None:
            return refusal
        if tool_name == SEARCH_TOOLS and turn.has_search:
            query = arguments.get("query") if isinstance(arguments, dict) else arguments
            answer = self._selector.search_now(turn, query)
            self._found += answer.names
            return answer.text
        return super().execute_tool_call(tool_name, arguments)


def _read(tool: Any) -> FrameworkTool | None:
    return None if isinstance(tool, MultiStepAgent) else framework_tool(tool)
