"""Ways to give an agent its tools, each as its makers document it, over the same tools and the same model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import LLMToolSelectorMiddleware
from langchain_core.messages import SystemMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from pydantic import Field

from pegboard.catalog import BpeCounter, Catalog, compact_json
from pegboard.gateways.langchain import ToolAttentionMiddleware
from pegboard.gateways.langchain.scripted_model import ScriptedModel, ScriptedRequest
from pegboard.protocols import Encoder
from pegboard_bench.agents.script import Behaviour

SYSTEM = "You are an assistant who works with tools. " * 20
"""About 160 tokens; the same for all."""
SELECTED = 5
"""Tools that the selecting model names, and that the store returns: more than their defaults of all and 2."""


@dataclass(kw_only=True)
class Contender:
    """An agent with a checkpointer; ``selections`` are the requests that went to a selecting model."""

    agent: Any
    model: ScriptedModel
    behaviour: Behaviour
    selections: list[int]
    middleware: ToolAttentionMiddleware | None = None

    def close(self) -> None:
        if self.middleware is not None:
            self.middleware.close()


class Selector(ScriptedModel):
    """A selecting model that is always right: it names the tools that the ask takes. What it was sent is counted."""

    behaviour: Any
    selections: list[int] = Field(default_factory=list)

    def with_structured_output(self, schema: Any, **_: Any) -> Any:
        def select(messages: Any) -> dict[str, Any]:
            said = "\n".join(each["content"] if isinstance(each, dict) else each.text for each in messages)
            self.selections.append(BpeCounter().count([said + compact_json(schema)])[0])
            return {"tools": [tool.name for tool in self.behaviour.ask.tools]}

        return RunnableLambda(select)


def local_tools(catalog: Catalog) -> list[BaseTool]:
    """Every tool of a catalog with an executor in this process that says what it was called with."""
    return [_local(tool.name, tool.description, tool.input_schema or {"type": "object"}) for tool in catalog.tools]


def _local(name: str, description: str, schema: Mapping[str, Any]) -> BaseTool:
    def run(**arguments: Any) -> str:
        return json.dumps({"done": name, "with": arguments})

    return StructuredTool(name=name, description=description or name, args_schema=dict(schema), func=run)


def full(tools: Sequence[BaseTool]) -> Contender:
    return _agent(tools)


def pegboard(tools: Sequence[BaseTool], **options: Any) -> Contender:
    return _agent(tools, ToolAttentionMiddleware(**options))


def llm_selector(tools: Sequence[BaseTool]) -> Contender:
    behaviour = Behaviour()
    selector = Selector(steps=[], behaviour=behaviour)
    made = _agent(tools, LLMToolSelectorMiddleware(model=selector, max_tools=SELECTED), behaviour=behaviour)
    made.selections = selector.selections
    return made


def bigtool(
    tools: Sequence[BaseTool], embed: Callable[[Sequence[str]], list[list[float]]], dimensions: int
) -> Contender:
    """langgraph-bigtool over LangGraph's own store, which embeds name and description with the same encoder.

    Its version 0.0.3 asks a `ToolNode` to inject arguments, by a method that LangGraph 1 has no more. No tool here has
    arguments to inject, so one that leaves the call alone stands in its place.
    """
    from langgraph.prebuilt import ToolNode
    from langgraph_bigtool import create_agent as create_bigtool

    if not hasattr(ToolNode, "inject_tool_args"):
        ToolNode.inject_tool_args = lambda node, call, state, store: call  # type: ignore[attr-defined]

    store = InMemoryStore(index={"embed": embed, "dims": dimensions, "fields": ["description"]})
    for tool in tools:
        store.put(("tools",), tool.name, {"description": f"{tool.name}: {tool.description}"})
    behaviour = Behaviour()
    model = ScriptedModel(steps=_forever(behaviour))
    builder = create_bigtool(model, {tool.name: tool for tool in tools}, limit=SELECTED)
    agent = builder.compile(store=store, checkpointer=InMemorySaver())
    return Contender(agent=agent, model=model, behaviour=behaviour, selections=[])


def _agent(tools: Sequence[BaseTool], *middleware: Any, behaviour: Behaviour | None = None) -> Contender:
    behaviour = behaviour or Behaviour()
    model = ScriptedModel(steps=_forever(behaviour))
    agent = create_agent(
        model,
        tools=list(tools),
        middleware=middleware,
        system_prompt=SystemMessage(SYSTEM),
        checkpointer=InMemorySaver(),
    )
    own = middleware[0] if middleware and isinstance(middleware[0], ToolAttentionMiddleware) else None
    return Contender(agent=agent, model=model, behaviour=behaviour, selections=[], middleware=own)


def _forever(behaviour: Behaviour) -> Iterator[Callable[[ScriptedRequest], Any]]:
    while True:
        yield behaviour


def contenders(
    tools: Sequence[BaseTool], encoder: Encoder, embed: Callable[[Sequence[str]], list[list[float]]], cache: Path
) -> dict[str, Callable[[], Contender]]:
    """All of them, to be made anew for each conversation."""
    mine = {"encoder": encoder, "cache_dir": cache, "state_dir": cache}
    return {
        "full": lambda: full(tools),
        "attention/native": lambda: pegboard(tools, profile="attention", rendering="native", **mine),
        "attention/text": lambda: pegboard(tools, profile="attention", rendering="text", **mine),
        "hybrid/native": lambda: pegboard(tools, rendering="native", **mine),
        "hybrid/text": lambda: pegboard(tools, rendering="text", **mine),
        "llm_selector": lambda: llm_selector(tools),
        "bigtool": lambda: bigtool(tools, embed, encoder.dimensions),
    }
