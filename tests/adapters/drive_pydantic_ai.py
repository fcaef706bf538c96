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
from scenario import Call, Driver, Functions, Script, halves, main

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


main(PydanticAI)
