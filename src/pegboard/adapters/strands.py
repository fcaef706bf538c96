"""Strands Agents: a plugin with middleware around each model call and each call of a tool.

The turn is in the state of the invocation, by agent, so an agent's invocations share nothing, nor do a graph's agents.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from typing import Any

from pegboard.adapters.selection import SEARCH_ABOUT, SEARCH_SCHEMA, SEARCH_TOOLS, ToolSelector, TurnTools, query_of
from pegboard.extras import required
from pegboard.library.framework_tools import ANY, FrameworkTool

required("strands.middleware", "strands")

from strands.middleware import (  # noqa: E402
    ExecuteToolContext,
    ExecuteToolStage,
    InvokeModelContext,
    InvokeModelStage,
    ToolResultEvent,
)
from strands.plugins import Plugin  # noqa: E402

TURN = "pegboard_turn"
SEARCH: Mapping[str, Any] = {
    "name": SEARCH_TOOLS,
    "description": SEARCH_ABOUT,
    "inputSchema": {"json": dict(SEARCH_SCHEMA)},
}
STRUCTURED_OUTPUT = "structured_output"
"""The type of the tool that Strands adds for a `structured_output_model`; it has the name of the model's class."""


class PegboardToolPlugin(Plugin):
    """Shows an agent's model the tools of each turn, refuses calls of others, and offers `search_tools`. One plugin may
    serve several agents."""

    name = "pegboard"

    def __init__(self, selector: ToolSelector | None = None) -> None:
        super().__init__()
        self._selector = (selector or ToolSelector()).reading(specified)

    def init_agent(self, agent: Any) -> None:
        """Registers the middleware with an agent."""
        agent.add_middleware(InvokeModelStage.Input, self._select)
        agent.add_middleware(ExecuteToolStage, self._execute)

    def _key(self, context: InvokeModelContext | ExecuteToolContext) -> str:
        """Agents of one graph share a state, also while they are at work at the same time."""
        return f"{TURN}:{id(self)}:{id(context.agent)}"

    async def _select(self, context: InvokeModelContext) -> InvokeModelContext:
        always = _always_shown(context)
        kept = [each for each in context.tool_specs if each["name"] in always]
        others = [each for each in context.tool_specs if each["name"] not in always]
        turn = await self._selector.select(others, context.messages, context)
        turn = replace(turn, tools=(*turn.tools, *kept), names=turn.names | always)
        context.invocation_state[self._key(context)] = turn
        return context.replace(tool_specs=[*turn.tools, *([dict(SEARCH)] if turn.has_search else ())])

    async def _execute(
        self, context: ExecuteToolContext, next_fn: Callable[[ExecuteToolContext], AsyncIterator[Any]]
    ) -> AsyncIterator[Any]:
        turn: TurnTools[Any] | None = context.invocation_state.get(self._key(context))
        name = context.tool_use["name"]
        if turn is not None and (refusal := turn.refusal(name)) is not None:
            yield _answered(context, refusal, status="error")
        elif turn is not None and name == SEARCH_TOOLS and turn.has_search:
            found = await self._selector.search(turn, query_of(context.tool_use["input"]))
            yield _answered(context, found.text)
        else:
            async for event in next_fn(context):
                yield event


def specified(specification: Mapping[str, Any]) -> FrameworkTool:
    """A tool as a model call has it."""
    schema = specification.get("inputSchema") or {}
    return FrameworkTool(specification["name"], specification.get("description", ""), schema.get("json", schema) or ANY)


def _always_shown(context: InvokeModelContext) -> frozenset[str]:
    """The tool that the request must call, and that of a structured output: neither is a matter of the turn's topic."""
    forced = (context.tool_choice or {}).get("tool") or {}
    registry = context.agent.tool_registry
    tools = {**registry.registry, **registry.dynamic_tools}
    outputs = {name for name, tool in tools.items() if tool.tool_type == STRUCTURED_OUTPUT}
    return frozenset(each["name"] for each in context.tool_specs if each["name"] in outputs | {forced.get("name")})


def _answered(context: ExecuteToolContext, text: str, *, status: str = "success") -> ToolResultEvent:
    return ToolResultEvent({"toolUseId": context.tool_use["toolUseId"], "status": status, "content": [{"text": text}]})
