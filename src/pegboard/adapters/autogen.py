"""AutoGen: a workbench around the agent's own, which lists the tools of the turn and checks calls.

A workbench is asked for its tools before each model call, and again for each call of a tool: then the agent's context
ends with a call that has no result yet, all tools are listed, and the gate decides. Handoffs are no tools of it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any

from pegboard.adapters.selection import SEARCH_ABOUT, SEARCH_SCHEMA, SEARCH_TOOLS, ToolSelector, TurnTools, query_of
from pegboard.extras import required
from pegboard.library.framework_tools import ANY, FrameworkTool

required("autogen_core", "autogen")

from autogen_core.model_context import ChatCompletionContext  # noqa: E402
from autogen_core.models import AssistantMessage  # noqa: E402
from autogen_core.tools import (  # noqa: E402
    StaticStreamWorkbench,
    TextResultContent,
    ToolResult,
    ToolSchema,
    Workbench,
)

SEARCH: Mapping[str, Any] = {"name": SEARCH_TOOLS, "description": SEARCH_ABOUT, "parameters": SEARCH_SCHEMA}


class PegboardWorkbench(StaticStreamWorkbench):
    """The tools of one agent, which must have the same ``context`` as its ``model_context``.

    Agents take events of tools from workbenches of this class alone; those of a workbench that has none are its
    results.
    """

    def __init__(
        self, workbench: Workbench, context: ChatCompletionContext, selector: ToolSelector | None = None
    ) -> None:
        self._workbench = workbench
        self._context = context
        self._selector = (selector or ToolSelector()).reading(listed)
        self._turn: TurnTools[ToolSchema] | None = None

    async def list_tools(self) -> list[ToolSchema]:
        """The tools of the turn; while calls are made, all of them."""
        tools: list[ToolSchema] = await self._workbench.list_tools()
        said = await self._context.get_messages()
        if self._turn is not None and said and _calls(said[-1]):
            return [*tools, dict(SEARCH)] if self._turn.has_search else tools
        self._turn = turn = await self._selector.select(tools, said, self._context)
        return [*turn.tools, *([dict(SEARCH)] if turn.has_search else ())]

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: Any = None,
        call_id: str | None = None,
    ) -> ToolResult:
        """The result of the tool, the error for a tool that the turn does not have, or what a search found."""
        answer = await self._answer(name, arguments)
        return answer or await self._workbench.call_tool(name, arguments, cancellation_token, call_id)

    async def call_tool_stream(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: Any = None,
        call_id: str | None = None,
    ) -> AsyncGenerator[Any, None]:
        """The same, after the events of a tool that has some, such as an agent."""
        stream = getattr(self._workbench, "call_tool_stream", None)
        if stream is None:
            yield await self.call_tool(name, arguments, cancellation_token, call_id)
        elif (answer := await self._answer(name, arguments)) is not None:
            yield answer
        else:
            async for event in stream(name, arguments, cancellation_token, call_id):
                yield event

    async def _answer(self, name: str, arguments: Mapping[str, Any] | None) -> ToolResult | None:
        """The refusal, or what a search found; None for a call of the tool itself."""
        turn = self._turn
        if turn is not None and (refusal := turn.refusal(name)) is not None:
            return ToolResult(name=name, result=[TextResultContent(content=refusal)], is_error=True)
        if turn is not None and name == SEARCH_TOOLS and turn.has_search:
            found = await self._selector.search(turn, query_of(arguments))
            return ToolResult(name=name, result=[TextResultContent(content=found.text)])
        return None

    async def start(self) -> None:
        await self._workbench.start()

    async def stop(self) -> None:
        await self._workbench.stop()

    async def reset(self) -> None:
        self._turn = None
        await self._workbench.reset()

    async def save_state(self) -> Mapping[str, Any]:
        state: Mapping[str, Any] = await self._workbench.save_state()
        return state

    async def load_state(self, state: Mapping[str, Any]) -> None:
        await self._workbench.load_state(state)

    def _to_config(self) -> Any:
        raise NotImplementedError("A PegboardWorkbench cannot be written as a component: make it in your program.")


def listed(schema: Mapping[str, Any]) -> FrameworkTool:
    """A tool as a workbench lists it."""
    return FrameworkTool(schema["name"], schema.get("description", ""), schema.get("parameters") or ANY)


def _calls(message: Any) -> bool:
    return isinstance(message, AssistantMessage) and not isinstance(message.content, str)
