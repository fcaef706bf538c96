"""LangChain's agents as ways: with Tool Attention's middleware, or with LangChain's own selector."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from langchain.agents import create_agent
from langchain.agents.middleware import LLMToolSelectorMiddleware
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    convert_to_messages,
    convert_to_openai_messages,
)
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from pegboard.catalog import compact_json
from pegboard.gateways.langchain import ToolAttentionMiddleware
from pegboard_bench.whole_tasks.model import Model
from pegboard_bench.whole_tasks.oracle import spellings
from pegboard_bench.whole_tasks.rates import Rates
from pegboard_bench.whole_tasks.task import Task
from pegboard_bench.whole_tasks.toolbox import Function, Toolbox

SELECTED = 5
"""Tools that the selecting model may name."""


class ModelOfPlay(BaseChatModel):
    """The play's model, as LangChain's agents call one."""

    model: Any

    @property
    def _llm_type(self) -> str:
        return "play"

    def _get_ls_params(self, stop: list[str] | None = None, **_: Any) -> Any:
        """As `ChatOpenAI` calls itself: middleware may go by it."""
        return {"ls_provider": "openai", "ls_model_name": self.model.name, "ls_model_type": "chat"}

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Runnable[Any, Any]:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools])

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        raise NotImplementedError("Plays are asynchronous")

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> ChatResult:
        tools = [*(options.get("tools") or ())]
        body = {"model": self.model.name, "messages": convert_to_openai_messages(messages)}
        message = await self.model.answer(body | ({"tools": tools} if tools else {}))
        said = {"role": "assistant", "content": message.get("content") or "", **_only(message, "tool_calls")}
        return ChatResult(generations=[ChatGeneration(message=_ai(said))])


class SelectorOfPlay(ModelOfPlay):
    """A selecting model that names each tool of the task as often as the model would call it among as many."""

    choose: Callable[[], Sequence[str]]

    def with_structured_output(self, schema: Any, **_: Any) -> Any:
        async def select(messages: Any) -> dict[str, Any]:
            said = "\n".join(each["content"] if isinstance(each, dict) else each.text for each in messages)
            self.model.sent.add_aside(said + compact_json(schema))
            return {"tools": [*self.choose()][:SELECTED]}

        return RunnableLambda(select)


def attention(box: Toolbox, model: Model, folder: Path) -> tuple[Any, ToolAttentionMiddleware]:
    """An agent with the middleware as it comes, for all plays, and the middleware to close."""
    middleware = ToolAttentionMiddleware(cache_dir=folder, state_dir=folder)
    return create_agent(ModelOfPlay(model=model), tools=_tools(box), middleware=[middleware]), middleware


def selected(box: Toolbox, model: Model, choose: Callable[[], Sequence[str]]) -> Any:
    """An agent whose tools LangChain's selector picks before each request."""
    selector = SelectorOfPlay(model=model, choose=choose)
    middleware = LLMToolSelectorMiddleware(model=selector, max_tools=SELECTED)
    return create_agent(ModelOfPlay(model=model), tools=_tools(box), middleware=[middleware])


def picks(task: Task, rates: Rates, seed: int, functions: Sequence[Function]) -> list[str]:
    """The functions that the selecting model names for a task."""
    names = [str(each["function"]["name"]) for each in functions]
    chance = rates.among(len(names))
    found = []
    for place, step in enumerate(task.steps):
        wanted = spellings(step.tools[0])
        right = next(name for name in names if name in wanted)
        draw = random.Random(f"{seed} {task.name} {place} selected")  # noqa: S311
        found.append(right if draw.random() < chance else draw.choice(names))
    return list(dict.fromkeys(found))


async def converse(agent: Any, task: Task, prompt: str, most: int) -> str:
    """What the agent answers, or nothing where it takes more requests than a play may have."""
    from langgraph.errors import GraphRecursionError

    messages = [{"role": "system", "content": prompt}, HumanMessage(task.ask)]
    try:
        out = await agent.ainvoke({"messages": messages}, {"recursion_limit": 4 * most})
    except GraphRecursionError:
        return ""
    return str(out["messages"][-1].text)


def _tools(box: Toolbox) -> list[StructuredTool]:
    return [_tool(box, each["function"]) for each in box.functions()]


def _tool(box: Toolbox, said: dict[str, Any]) -> StructuredTool:
    name = str(said["name"])

    async def run(**arguments: Any) -> str:
        return await box.call(name, arguments)

    return StructuredTool(
        name=name, description=said["description"] or name, args_schema=said["parameters"], coroutine=run
    )


def _only(message: dict[str, Any], name: str) -> dict[str, Any]:
    return {name: message[name]} if message.get(name) else {}


def _ai(said: dict[str, Any]) -> AIMessage:
    return cast("AIMessage", convert_to_messages([said])[0])
