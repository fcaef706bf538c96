"""Google's Agent Development Kit: a plugin, whose callbacks select before each model call and check before each tool.

It serves all agents of a runner. `transfer_to_agent` and `set_model_response` are never left out.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from pegboard.adapters.selection import SEARCH_ABOUT, SEARCH_SCHEMA, SEARCH_TOOLS, ToolSelector, TurnTools
from pegboard.extras import required
from pegboard.library.framework_tools import ANY, FrameworkTool

required("google.adk", "google-adk")

from google.adk.plugins.base_plugin import BasePlugin  # noqa: E402
from google.adk.tools.base_tool import BaseTool  # noqa: E402
from google.genai import types  # noqa: E402

Key = tuple[str, str]
"""An invocation and an agent."""
MOST_TURNS = 2048
"""Turns kept, the most recent: ADK calls no plugin when an invocation is cancelled."""


class PegboardPlugin(BasePlugin):
    """Shows models the tools of each turn, refuses calls of others, and offers `search_tools`."""

    def __init__(self, selector: ToolSelector | None = None, name: str = "pegboard") -> None:
        super().__init__(name=name)
        self._selector = (selector or ToolSelector()).reading(declared)
        self._turns: OrderedDict[Key, TurnTools[types.FunctionDeclaration]] = OrderedDict()
        self._lock = threading.Lock()

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        """Leaves the declarations of the turn in the request. Tools that are left out stay known to the runner, whose
        calls of them are answered by `before_tool_callback`."""
        groups = [tool for tool in llm_request.config.tools or () if getattr(tool, "function_declarations", None)]
        declarations = [each for group in groups for each in group.function_declarations]
        calling = getattr(llm_request.config.tool_config, "function_calling_config", None)
        forced = getattr(calling, "allowed_function_names", None) or ()
        turn = await self._selector.select(declarations, llm_request.contents, callback_context, forced=forced)
        self._keep(_key(callback_context), turn)
        shown = frozenset(map(id, turn.tools))
        for group in groups:
            group.function_declarations = [each for each in group.function_declarations if id(each) in shown]
        llm_request.config.tools = [tool for tool in llm_request.config.tools or () if _is_left(tool, groups)]
        if turn.has_search:
            llm_request.append_tools([TurnSearchTool(self._selector, turn)])

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: Mapping[str, Any], tool_context: Any
    ) -> dict[str, Any] | None:
        """The error, if the turn does not have the tool; None lets the runner call it."""
        turn = self._turns.get(_key(tool_context))
        refusal = turn.refusal(tool.name) if turn is not None and turn.board is not None else None
        return None if refusal is None else json.loads(refusal)

    async def after_run_callback(self, *, invocation_context: Any) -> None:
        """Forgets the invocation."""
        self._forget(invocation_context.invocation_id)

    async def on_run_error_callback(self, *, invocation_context: Any, error: Exception) -> None:
        """Forgets an invocation that ended with an error."""
        self._forget(invocation_context.invocation_id)

    def _keep(self, key: Key, turn: TurnTools[types.FunctionDeclaration]) -> None:
        with self._lock:
            self._turns[key] = turn
            self._turns.move_to_end(key)
            while len(self._turns) > MOST_TURNS:
                self._turns.popitem(last=False)

    def _forget(self, invocation: str) -> None:
        with self._lock:
            for key in [key for key in self._turns if key[0] == invocation]:
                del self._turns[key]


class TurnSearchTool(BaseTool):
    """`search_tools` of one turn."""

    def __init__(self, selector: ToolSelector, turn: TurnTools[Any]) -> None:
        super().__init__(name=SEARCH_TOOLS, description=SEARCH_ABOUT)
        self._selector = selector
        self._turn = turn

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=SEARCH_TOOLS, description=SEARCH_ABOUT, parameters_json_schema=dict(SEARCH_SCHEMA)
        )

    async def run_async(self, *, args: Mapping[str, Any], tool_context: Any) -> dict[str, Any]:
        answer = await self._selector.search(self._turn, args.get("query"))
        found: dict[str, Any] = json.loads(answer.text)
        return found


def declared(declaration: types.FunctionDeclaration) -> FrameworkTool:
    """A declaration in a request."""
    schema = declaration.parameters_json_schema
    if schema is None and declaration.parameters is not None:
        schema = declaration.parameters.model_dump(mode="json", exclude_none=True, by_alias=True)
    return FrameworkTool(declaration.name or "", declaration.description or "", schema or ANY)


def _is_left(tool: Any, groups: list[Any]) -> bool:
    """Whether a group still declares a function, or is a hosted tool."""
    return not any(tool is group for group in groups) or bool(tool.function_declarations)


def _key(context: Any) -> Key:
    return context.invocation_id, context.agent_name
