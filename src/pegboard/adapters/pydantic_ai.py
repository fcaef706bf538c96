"""Pydantic AI: a capability for an agent with all its toolsets, a toolset for one of them, a strategy for `ToolSearch`.

Output tools (`final_result`) are no function tools, and pass as they are; so do native tools.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pegboard.adapters.selection import MOST_FOUND, SEARCH_ABOUT, SEARCH_SCHEMA, SEARCH_TOOLS, ToolSelector, TurnTools
from pegboard.extras import required

required("pydantic_ai", "pydantic-ai")

from pydantic_ai import RunContext, Tool, ToolDefinition  # noqa: E402
from pydantic_ai.capabilities import AbstractCapability, ToolSearch  # noqa: E402
from pydantic_ai.exceptions import SkipToolExecution, SkipToolValidation  # noqa: E402
from pydantic_ai.models import ModelRequestContext  # noqa: E402
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset, ToolsetTool, WrapperToolset  # noqa: E402

FIND_TOOLS = "find_tools"
"""The search where `search_tools` is the agent's own, or Pydantic AI's, for tools with `defer_loading=True`."""


@dataclass
class PegboardCapability(AbstractCapability[Any]):
    """Shows an agent's model the tools of each turn, refuses calls of others, and offers `search_tools`:
    ``Agent(model, capabilities=[PegboardCapability()])``. Tools with `defer_loading=True` are left to Pydantic AI.
    """

    selector: ToolSelector = field(default_factory=ToolSelector)
    selection: TurnTools[ToolDefinition] | None = None
    """That of the latest model call of this run."""
    search: str = ""
    """The name of the search in this run's latest list of tools."""
    found: list[str] = field(default_factory=list)
    """What searches under another name than `search_tools` found: messages do not tell."""

    async def for_run(self, ctx: RunContext[Any]) -> PegboardCapability:
        """Each run has its own selection."""
        return replace(self, selection=None, search="", found=[])

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any] | None:
        """The agent's tools with the search, which is shown where there is something to find."""
        return WithSearch(toolset, self) if self.selector.has_way_back else None

    async def searched(self, query: str) -> str:
        """The answer of a search."""
        assert self.selection is not None  # noqa: S101 - tools are called after a model
        answer = await self.selector.search(self.selection, query)
        self.found += answer.names
        return answer.text

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """The request with the tools of the turn."""
        parameters = request_context.model_request_parameters
        deferred = {tool.name for tool in parameters.function_tools if tool.defer_loading}
        aside = deferred | {SEARCH_TOOLS} if deferred else deferred
        tools = [tool for tool in parameters.function_tools if tool.name not in aside | {self.search}]
        forced = _forced(request_context.model_settings)
        selection = await self.selector.select(tools, request_context.messages, ctx, found=self.found, forced=forced)
        self.selection = selection = replace(selection, names=selection.names | aside, search=self.search)
        names = {tool.name for tool in selection.tools} | aside | ({self.search} if selection.has_search else set())
        shown = [tool for tool in parameters.function_tools if tool.name in names]
        return replace(request_context, model_request_parameters=replace(parameters, function_tools=shown))

    async def before_tool_validate(
        self, ctx: RunContext[Any], *, call: Any, tool_def: ToolDefinition, args: Any
    ) -> Any:
        """The arguments of a refused call are not looked at."""
        if self._refusal(tool_def) is not None:
            raise SkipToolValidation({})
        return args

    async def before_tool_execute(self, ctx: RunContext[Any], *, call: Any, tool_def: ToolDefinition, args: Any) -> Any:
        """A refused call is answered with the error."""
        if (refusal := self._refusal(tool_def)) is not None:
            raise SkipToolExecution(refusal)
        return args

    def _refusal(self, tool: ToolDefinition) -> str | None:
        if self.selection is None or tool.kind == "output":
            return None
        return self.selection.refusal(tool.name)


@dataclass
class WithSearch(WrapperToolset[Any]):
    """An agent's tools, and the search for those that a turn leaves out."""

    capability: PegboardCapability

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """All tools; the search has a name that nobody else needs, or is not offered."""
        tools: dict[str, ToolsetTool[Any]] = await super().get_tools(ctx)
        is_taken = SEARCH_TOOLS in tools or any(tool.tool_def.defer_loading for tool in tools.values())
        name = FIND_TOOLS if is_taken else SEARCH_TOOLS
        self.capability.search = "" if name in tools else name
        if name in tools:
            return tools
        search = Tool.from_schema(self.capability.searched, name, SEARCH_ABOUT, dict(SEARCH_SCHEMA))
        return {**tools, **await FunctionToolset([search]).get_tools(ctx)}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """The answer of the search or of the agent's tool."""
        of = tool.toolset if name == self.capability.search else self.wrapped
        return await of.call_tool(name, tool_args, ctx, tool)


@dataclass
class PegboardToolset(WrapperToolset[Any]):
    """One toolset, of which each turn gets what it needs; other toolsets of the agent pass as they are. Pydantic AI
    itself refuses calls of tools that a turn does not have."""

    selector: ToolSelector = field(default_factory=lambda: ToolSelector(way_back=False))

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """The tools of the turn."""
        tools = await super().get_tools(ctx)
        deferred = {name for name, tool in tools.items() if tool.tool_def.defer_loading}
        others = [tool for name, tool in tools.items() if name not in deferred]
        selection = await self.selector.select(others, ctx.messages, ctx)
        return {name: tool for name, tool in tools.items() if name in selection.names | deferred}


def tool_search(selector: ToolSelector | None = None) -> ToolSearch[Any]:
    """Pydantic AI's own search over tools with ``defer_loading=True``, with Pegboard's ranking; on providers with a
    search of their own, too."""
    selector = selector or ToolSelector()

    async def strategy(ctx: RunContext[Any], queries: Sequence[str], tools: Sequence[ToolDefinition]) -> list[str]:
        selection = await selector.select([*tools], "\n".join(queries), ctx, whole_if_small=False)
        return list(selection.ranked[:MOST_FOUND])

    return ToolSearch(strategy=strategy)


def _forced(settings: Any) -> list[str]:
    """The tools that a request must call, or is confined to."""
    choice = (settings or {}).get("tool_choice")
    names = getattr(choice, "function_tools", choice)
    return list(names) if isinstance(names, list | tuple) else []
