"""Microsoft Agent Framework: middleware around a run, each model call and each call of a tool.

A run is a task, and its turn is in a variable of the task's context: runs and agents called as tools share nothing.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Any

from pegboard.adapters.selection import SEARCH_ABOUT, SEARCH_SCHEMA, SEARCH_TOOLS, ToolSelector, TurnTools
from pegboard.extras import required

required("agent_framework", "agent-framework")

from agent_framework import (  # noqa: E402
    AgentContext,
    AgentMiddleware,
    ChatContext,
    ChatMiddleware,
    FunctionInvocationContext,
    FunctionMiddleware,
    FunctionTool,
    MiddlewareBundle,
)

Next = Callable[[], Awaitable[None]]
Turn = ContextVar[TurnTools[Any] | None]


def pegboard_middleware(selector: ToolSelector | None = None) -> MiddlewareBundle:
    """Shows models the tools of each turn, refuses calls of others, and offers `search_tools`; for one agent or for
    several."""
    selector = (selector or ToolSelector()).reading(once=True)
    turn: Turn = ContextVar("pegboard_turn", default=None)
    return MiddlewareBundle([OfferSearch(), SelectTools(selector, turn), GateCalls(selector, turn)])


class OfferSearch(AgentMiddleware):
    """Adds `search_tools` to a run's tools; the framework calls no tools that a run does not know."""

    def __init__(self) -> None:
        self._tool = FunctionTool(
            name=SEARCH_TOOLS,
            description=SEARCH_ABOUT,
            func=_answered_by_the_gate,
            input_model=dict(SEARCH_SCHEMA),
            approval_mode="never_require",
        )

    async def process(self, context: AgentContext, call_next: Next) -> None:
        known = {getattr(tool, "name", "") for tool in context._resolve_run_start_tools()}
        given = context.tools if isinstance(context.tools, list | tuple) else [context.tools] if context.tools else []
        if SEARCH_TOOLS not in known:
            context.tools = [*given, self._tool]
        await call_next()


class SelectTools(ChatMiddleware):
    """Leaves the tools of the turn in a request."""

    def __init__(self, selector: ToolSelector, turn: Turn) -> None:
        self._selector = selector
        self._turn = turn

    async def process(self, context: ChatContext, call_next: Next) -> None:
        options: Mapping[str, Any] = context.options or {}
        tools = list(options.get("tools") or ())
        search = [tool for tool in tools if _is_search(tool)]
        others = [tool for tool in tools if not _is_search(tool)]
        turn = await self._selector.select(
            others, context.messages, context, forced=_forced(options.get("tool_choice"))
        )
        self._turn.set(turn)
        if tools:
            context.options = {**options, "tools": [*turn.tools, *(search if turn.has_search else ())]}
        await call_next()


class GateCalls(FunctionMiddleware):
    """Answers calls of tools that the turn does not have, and searches."""

    def __init__(self, selector: ToolSelector, turn: Turn) -> None:
        self._selector = selector
        self._turn = turn

    async def process(self, context: FunctionInvocationContext, call_next: Next) -> None:
        turn, name = self._turn.get(), context.function.name
        if turn is not None and turn.board is not None and (refusal := turn.refusal(name)) is not None:
            context.result = refusal
        elif turn is not None and _is_search(context.function):
            context.result = (await self._selector.search(turn, _argument(context.arguments, "query"))).text
        else:
            await call_next()


def _answered_by_the_gate(query: str) -> str:
    return json.dumps({"found": [], "note": query})


def _is_search(tool: Any) -> bool:
    return getattr(tool, "func", None) is _answered_by_the_gate


def _forced(choice: Any) -> list[str]:
    """The tools that a request must call, or is confined to."""
    if not isinstance(choice, Mapping):
        return []
    names = [choice.get("required_function_name"), *(choice.get("allowed_tools") or ())]
    return [name for name in names if isinstance(name, str)]


def _argument(arguments: Any, name: str) -> Any:
    return arguments.get(name) if isinstance(arguments, Mapping) else getattr(arguments, name, None)
