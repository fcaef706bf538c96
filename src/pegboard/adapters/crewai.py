"""crewAI: a hook before each model call, for models that call tools natively.

The hook changes what the executor of a task has for this call: the tools that its model is shown, and the functions
behind their names. `delegate_work_to_coworker` and its like are never left out.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pegboard.adapters.selection import SEARCH_ABOUT, SEARCH_SCHEMA, SEARCH_TOOLS, ToolSelector, TurnTools
from pegboard.extras import required
from pegboard.library.framework_tools import ANY, FrameworkTool

required("crewai.hooks", "crewai")

from crewai.hooks import register_before_llm_call_hook, unregister_before_llm_call_hook  # noqa: E402
from crewai.tools import BaseTool  # noqa: E402
from pydantic import BaseModel, Field  # noqa: E402

SEARCH: Mapping[str, Any] = {
    "type": "function",
    "function": {"name": SEARCH_TOOLS, "description": SEARCH_ABOUT, "parameters": dict(SEARCH_SCHEMA)},
}


class NotAvailableError(Exception):
    """Its text is the answer to a call of a tool that the turn does not have. Raised, as crewAI caches what returns."""


class SearchQuery(BaseModel):
    query: str = Field(description=SEARCH_SCHEMA["properties"]["query"]["description"])


class CrewSearch(BaseTool):
    """`search_tools` of one turn."""

    name: str = SEARCH_TOOLS
    description: str = SEARCH_ABOUT
    args_schema: type[BaseModel] = SearchQuery
    cache_function: Callable[..., bool] = lambda *_: False
    answer: Callable[[str], str]

    def _run(self, query: str) -> str:
        return self.answer(query)


@dataclass(frozen=True, slots=True)
class ExecutorTools:
    """What an executor has for a task: ``shown`` is its own list, ``tools`` what was in it."""

    executor: weakref.ref[Any]
    shown: list[Any]
    tools: tuple[Any, ...]
    functions: Mapping[str, Any]


class PegboardHook:
    """Shows models the tools of each turn, refuses calls of others, and offers `search_tools`, in all crews that begin
    while it is registered.

    ``with PegboardHook(): crew.kickoff()``
    """

    def __init__(self, selector: ToolSelector | None = None) -> None:
        self._selector = (selector or ToolSelector()).reading(offered)
        self._known: dict[int, ExecutorTools] = {}

    def __enter__(self) -> PegboardHook:
        register_before_llm_call_hook(self)
        return self

    def __exit__(self, *_: object) -> None:
        unregister_before_llm_call_hook(self)

    def __call__(self, context: Any) -> None:
        """Selects for the call that is about to be made."""
        executor = context.executor
        if not getattr(executor, "_openai_tools", None):
            return
        own = self._own(executor)
        turn = self._selector.select_now(own.tools, context.messages, context)
        own.shown[:] = [*turn.tools, *([dict(SEARCH)] if turn.has_search else ())]
        executor._available_functions = {name: _gated(name, of, turn) for name, of in own.functions.items()}
        if turn.has_search:
            search = CrewSearch(answer=lambda query: self._selector.search_now(turn, query).text)
            executor._tool_name_mapping[SEARCH_TOOLS] = search
            executor._available_functions[SEARCH_TOOLS] = search.run

    def _own(self, executor: Any) -> ExecutorTools:
        """What the executor had before the first call; it makes a new list for each task."""
        place, shown = id(executor), executor._openai_tools
        known = self._known.get(place)
        if known is None or known.executor() is not executor or known.shown is not shown:
            forget = weakref.ref(executor, lambda _: self._known.pop(place, None))
            known = ExecutorTools(forget, shown, tuple(shown), dict(executor._available_functions))
            self._known[place] = known
        return known


def offered(tool: Mapping[str, Any]) -> FrameworkTool | None:
    """A tool as a model is offered it; None for a hosted one."""
    function = tool.get("function")
    if not isinstance(function, Mapping):
        return None
    return FrameworkTool(function["name"], function.get("description") or "", function.get("parameters") or ANY)


def _gated(name: str, function: Callable[..., Any], turn: TurnTools[Any]) -> Callable[..., Any]:
    refusal = turn.refusal(name)
    if refusal is None:
        return function

    def refuse(**_: Any) -> Any:
        raise NotAvailableError(refusal)

    return refuse
