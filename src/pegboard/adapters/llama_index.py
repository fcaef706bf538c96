"""LlamaIndex: an agent of workflows, whose `take_step` shows the model the tools of the turn and checks its calls.

Steps of a workflow share nothing but its messages. So an answer that no tool gives, a refusal or what a search found,
is put into the call itself, which a hidden tool only repeats.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pegboard.adapters.selection import SEARCH_ABOUT, SEARCH_TOOLS, ToolSelector, TurnTools
from pegboard.extras import required

required("llama_index.core.agent.workflow", "llama-index")

from llama_index.core.agent.workflow import FunctionAgent  # noqa: E402
from llama_index.core.bridge.pydantic import PrivateAttr  # noqa: E402
from llama_index.core.tools import FunctionTool, ToolSelection  # noqa: E402

REPEAT = "pegboard_answer"
"""The hidden tool."""


def search_tools(query: str) -> str:
    """Its answer is in the call of the hidden tool."""
    return query


def repeat(text: str) -> str:
    """Gives the answer to a call that no tool of the turn has."""
    return text


class PegboardFunctionAgent(FunctionAgent):
    """A `FunctionAgent` that shows its model the tools of each turn, refuses calls of others, and offers
    `search_tools`; alone or in an `AgentWorkflow`."""

    _selector: ToolSelector = PrivateAttr()
    _search: FunctionTool = PrivateAttr()

    def __init__(self, *, selector: ToolSelector | None = None, **fields: Any) -> None:
        hidden = FunctionTool.from_defaults(fn=repeat, name=REPEAT)
        super().__init__(**{**fields, "tools": [*(fields.get("tools") or ()), hidden]})
        self._selector = (selector or ToolSelector()).reading(once=True)
        self._search = FunctionTool.from_defaults(fn=search_tools, name=SEARCH_TOOLS, description=SEARCH_ABOUT)

    async def take_step(self, ctx: Any, llm_input: list[Any], tools: Sequence[Any], memory: Any) -> Any:
        """One step with the tools of its turn."""
        said = [*llm_input, *await ctx.store.get(self.scratchpad_key, default=[])]
        given = [tool for tool in tools if tool.metadata.name != REPEAT]
        forced = [self.initial_tool_choice] if self.initial_tool_choice else []
        turn = await self._selector.select(given, said, ctx, forced=forced)
        shown = [*turn.tools, *([self._search] if turn.has_search else ())]
        output = await super().take_step(ctx, llm_input, shown, memory)
        output.tool_calls = [await self._checked(call, turn) for call in output.tool_calls]
        return output

    async def _checked(self, call: ToolSelection, turn: TurnTools[Any]) -> ToolSelection:
        """The call, or one of the hidden tool in its place; it keeps its id, so that the answer goes to it."""
        if (refusal := turn.refusal(call.tool_name)) is not None:
            return _repeating(call, refusal)
        if call.tool_name == SEARCH_TOOLS and turn.has_search:
            return _repeating(call, (await self._selector.search(turn, call.tool_kwargs.get("query"))).text)
        return call


def _repeating(call: ToolSelection, text: str) -> ToolSelection:
    return ToolSelection(tool_id=call.tool_id, tool_name=REPEAT, tool_kwargs={"text": text})
