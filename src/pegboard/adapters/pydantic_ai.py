"""Pydantic AI: a capability for an agent with all its toolsets, a toolset for one of them, a strategy for `ToolSearch`.

Output tools (`final_result`) are no function tools, and pass as they are; so do native tools.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pegboard.adapters.selection import MOST_FOUND, SEARCH_ABOUT, SEARCH_TOOLS, ToolSelector, TurnTools
from pegboard.extras import required

required("pydantic_ai", "pydantic-ai")

from pydantic_ai import RunContext, Tool, ToolDefinition  # noqa: E402
from pydantic_ai.capabilities import AbstractCapability, ToolSearch  # noqa: E402
from pydantic_ai.exceptions import SkipToolExecution, SkipToolValidation  # noqa: E402
from pydantic_ai.models import ModelRequestContext  # noqa: E402
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset, ToolsetTool, WrapperToolset  # noqa: E402


@dataclass
class PegboardCapability(AbstractCapability[Any]):
    """Shows an agent's model the tools of each turn, refuses calls of others, and offers `search_tools`:
    ``Agent(model, capabilities=[PegboardCapability()])``.
    """

    selector: ToolSelector = field(default_factory=ToolSelector)
    selection: TurnTools[ToolDefinition] | None = None
    """That of the latest model call of this run."""

    async def for_run(self, ctx: RunContext[Any]) -> PegboardCapability:
        """Each run has its own selection."""
        return replace(self, selection=None)

    def get_toolset(self) -> AbstractToolset[Any]:
        """The search tool; it is shown where there is something to find."""

        async def search_tools(query: str) -> str:
            assert self.selection is not None  # noqa: S101 - tools are called after a model
            return (await self.selector.search(self.selection, query)).text

        return FunctionToolset([Tool(search_tools, name=SEARCH_TOOLS, description=SEARCH_ABOUT)])

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """The request with the tools of the turn."""
        parameters = request_context.model_request_parameters
        tools = [tool for tool in parameters.function_tools if tool.name != SEARCH_TOOLS]
        search = [tool for tool in parameters.function_tools if tool.name == SEARCH_TOOLS]
        self.selection = selection = await self.selector.select(tools, request_context.messages, ctx)
        shown = [*selection.tools, *(search if selection.has_search else ())]
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
class PegboardToolset(WrapperToolset[Any]):
    """One toolset, of which each turn gets what it needs; other toolsets of the agent pass as they are. Pydantic AI
    itself refuses calls of tools that a turn does not have."""

    selector: ToolSelector = field(default_factory=lambda: ToolSelector(way_back=False))

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """The tools of the turn."""
        tools = await super().get_tools(ctx)
        selection = await self.selector.select([*tools.values()], ctx.messages, ctx)
        return {name: tool for name, tool in tools.items() if name in selection.names}


def tool_search(selector: ToolSelector | None = None) -> ToolSearch[Any]:
    """Pydantic AI's own search over tools with ``defer_loading=True``, with Pegboard's ranking; on providers with a
    search of their own, too."""
    selector = selector or ToolSelector()

    async def strategy(ctx: RunContext[Any], queries: Sequence[str], tools: Sequence[ToolDefinition]) -> list[str]:
        selection = await selector.select([*tools], "\n".join(queries), ctx, whole_if_small=False)
        return list(selection.ranked[:MOST_FOUND])

    return ToolSearch(strategy=strategy)
