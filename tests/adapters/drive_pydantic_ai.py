"""pydantic-ai: `PegboardCapability`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic_ai import Agent, Tool
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.settings import ModelSettings, ToolOrOutput
from scenario import ASKS, CALLS, Call, Driver, Functions, Script, functions, halves, main

from pegboard import Board
from pegboard.adapters.pydantic_ai import PegboardCapability
from pegboard.adapters.selection import ToolSelector


def model(script: Script) -> FunctionModel:
    def step(messages: list[ModelMessage], info: AgentInfo) -> Any:
        parts = [part for message in messages for part in message.parts]
        results = [str(part.content) for part in parts if isinstance(part, ToolReturnPart)]
        return script.reply([tool.name for tool in [*info.function_tools, *info.output_tools]], results)

    def whole(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        reply = step(messages, info)
        part = ToolCallPart(reply.name, reply.arguments) if isinstance(reply, Call) else TextPart(reply)
        return ModelResponse(parts=[part])

    async def streamed(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        reply = step(messages, info)
        if isinstance(reply, Call):
            yield {0: DeltaToolCall(name=reply.name, json_args='{"id": "7"}', tool_call_id=f"c{len(script.shown)}")}
        else:
            for half in halves(reply):
                yield half

    return FunctionModel(whole, stream_function=streamed)


class Report(BaseModel):
    summary: str


class PydanticAI(Driver):
    def __init__(self, board: Board) -> None:
        self.board = board
        self.selector = ToolSelector(board)

    def agent(self, script: Script, functions: Functions, **more: Any) -> Agent[None, Any]:
        return Agent(
            model(script), tools=self.tools(functions), capabilities=[PegboardCapability(self.selector)], **more
        )

    async def run(self, ask: str, script: Script, functions: Functions, *, stream: bool = False) -> str:
        agent = self.agent(script, functions)
        if not stream:
            return str((await agent.run(ask)).output)
        async with agent.run_stream(ask) as running:
            script.streamed += [part async for part in running.stream_text(delta=True, debounce_by=None)]
            return str(await running.get_output())

    async def run_forced(self, ask: str, script: Script, functions: Functions, name: str) -> str:
        settings = ModelSettings(tool_choice=ToolOrOutput(function_tools=[name]))
        return str((await self.agent(script, functions).run(ask, model_settings=settings)).output)

    async def run_with_handoff(self, ask: str, script: Script, functions: Functions) -> str:
        """An agent that delegates to a second one by a tool, as Pydantic AI's agents do; both end by output tools."""
        second = self.agent(script, functions)

        async def delegate_to_expert() -> str:
            """Delegate the work to the expert."""
            return str((await second.run(ask)).output)

        first = self.agent(
            Script([lambda tools: script.reply(tools), Call("final_result", {"summary": "done"})]),
            [*functions, delegate_to_expert],
            output_type=Report,
        )
        return (await first.run(ask)).output.summary

    def tools(self, functions: Functions) -> list[Any]:
        return [Tool(each) for each in functions]

    def messages(self, ask: str) -> list[Any]:
        return [
            ModelRequest(parts=[UserPromptPart(ask)]),
            ModelResponse(parts=[ToolCallPart("get_invoice", {}, tool_call_id="c")]),
            ModelRequest(parts=[ToolReturnPart("get_invoice", "ok", tool_call_id="c")]),
            ModelResponse(parts=[TextPart("It is there.")]),
        ]

    async def select(self, ask: str, tools: Sequence[Any]) -> object:
        return await self.selector.select(tools, [ModelRequest(parts=[UserPromptPart(ask)])])


def see_moon(**where: str) -> str:
    """Look at the moon."""
    return f"the moon {where}"


def search_tools(query: str) -> str:
    """Search the shed for hammers and saws."""
    return f"no {query}"


async def deferred(driver: PydanticAI) -> dict[str, Any]:
    """Agents for whom the name `search_tools` is taken: by Pydantic AI's search for deferred tools, or their own."""
    found: dict[str, Any] = {}
    for name, tool in {"deferred": Tool(see_moon, defer_loading=True), "own": Tool(search_tools)}.items():
        CALLS.clear()
        search = Call("find_tools", {"query": "translate the text of a telescope"})
        script = Script([search, Call("translate_telescope"), "done"])
        capability = PegboardCapability(driver.selector)
        agent = Agent(model(script), tools=[*map(Tool, functions()), tool], capabilities=[capability])
        said = (await agent.run(ASKS[0][1])).output
        found[name] = {"said": said, "ran": list(CALLS), "shown": script.shown[0], "results": script.results}
    script = Script([Call("search_tools", {"query": "hammers"}), "done"])
    capability = PegboardCapability(ToolSelector(driver.board, fields=lambda _: {"only": ("*/get_*",)}))
    tools = [*map(Tool, functions()), Tool(search_tools)]
    await Agent(model(script), tools=tools, capabilities=[capability]).run(ASKS[0][1])
    found["no right"] = {"shown": script.shown[0], "results": script.results}
    script = Script([Call("search_tools", {"queries": ["moon"]}), Call("see_moon"), "done"])
    capability = PegboardCapability(ToolSelector(driver.board, way_back=False))
    tools = [*map(Tool, functions()), Tool(see_moon, defer_loading=True)]
    await Agent(model(script), tools=tools, capabilities=[capability]).run(ASKS[0][1])
    return found | {"off": {"shown": script.shown[0], "results": script.results}}


main(PydanticAI, deferred=deferred)
