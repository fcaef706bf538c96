"""The OpenAI Agents SDK: `Agent.get_all_tools` selects, `RunConfig` has the gate.

Handoffs and output types are no tools of `get_all_tools`, and pass as they are; so do hosted tools.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

from pegboard.adapters.selection import SEARCH_ABOUT, SEARCH_SCHEMA, SEARCH_TOOLS, ToolSelector, TurnTools, query_of
from pegboard.extras import required

required("agents", "openai-agents")

from agents import Agent, FunctionTool, RunConfig, RunContextWrapper, Tool, ToolErrorFormatterArgs  # noqa: E402

NOT_FOUND = "tool_not_found"


@dataclass(slots=True, kw_only=True)
class RunTools:
    """The tools of one run: what its model may call now, what searches found, and what was refused."""

    selection: TurnTools[Tool]
    found: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


class RunSelector(ToolSelector):
    """A `ToolSelector` that remembers each run's selection as long as the run lives. Several agents may share it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._runs: WeakKeyDictionary[RunContextWrapper[Any], RunTools] = WeakKeyDictionary()

    async def tools_of(
        self, tools: list[Tool], run: RunContextWrapper[Any], forced: Collection[str] = ()
    ) -> list[Tool]:
        """The tools of the run's next model call, with those that it is ``forced`` to call."""
        before = self._runs.get(run)
        found, refused = (before.found, before.refused) if before is not None else ([], [])
        selection = await self.select(
            tools, run.turn_input, run, found=[*found, *_decided(run)], refused=refused, forced=forced
        )
        self._runs[run] = RunTools(selection=selection, found=found, refused=refused)
        return [*selection.tools, *([self._search_tool(selection, found)] if selection.has_search else [])]

    def run_config(self, config: RunConfig | None = None) -> RunConfig:
        """The configuration of a run whose model is told that a tool is not available, instead of ending the run."""
        config = config or RunConfig()
        others = config.tool_error_formatter

        def formatted(error: ToolErrorFormatterArgs[Any]) -> Any:
            run = self._runs.get(error.run_context) if error.kind == NOT_FOUND else None
            if run is None:
                return others(error) if others is not None else None
            run.refused.append(error.tool_name)
            return run.selection.refusal(error.tool_name)

        return replace(config, tool_not_found_behavior="return_error_to_model", tool_error_formatter=formatted)

    def _search_tool(self, selection: TurnTools[Tool], found: list[str]) -> FunctionTool:
        async def search(_context: Any, arguments: str) -> str:
            answer = await self.search(selection, query_of(arguments))
            found.extend(answer.names)
            return answer.text

        return FunctionTool(
            name=SEARCH_TOOLS,
            description=SEARCH_ABOUT,
            params_json_schema=dict(SEARCH_SCHEMA),
            on_invoke_tool=search,
        )


@dataclass
class PegboardAgent(Agent[Any]):
    """An agent that shows its model the tools of each turn. Run it with ``selector.run_config()``."""

    selector: RunSelector = field(default_factory=RunSelector)

    async def get_all_tools(self, run_context: RunContextWrapper[Any]) -> list[Tool]:
        """The tools of the turn."""
        choice = self.model_settings.tool_choice
        tools = await super().get_all_tools(run_context)
        return await self.selector.tools_of(tools, run_context, [choice] if isinstance(choice, str) else [])


def _decided(run: RunContextWrapper[Any]) -> list[str]:
    """The tools whose calls were approved or rejected: a run that is resumed from its JSON answers those calls, and has
    nothing else that says which tools it had."""
    keys = (getattr(key, "tool_key", key) for key in run._approvals)
    names = [key for key in keys if isinstance(key, str)]
    return [*names, *(re.split("[.:]", name)[-1] for name in names)]
