"""smolagents: `PegboardToolCallingAgent`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from scenario import ASKS, Call, Driver, Functions, Script, functions, halves, main
from smolagents import Tool
from smolagents.models import (
    ChatMessage,
    ChatMessageStreamDelta,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    ChatMessageToolCallStreamDelta,
    MessageRole,
    Model,
)

from pegboard import Board
from pegboard.adapters.selection import ToolSelector
from pegboard.adapters.smolagents import PegboardToolCallingAgent


class Scripted(Model):
    def __init__(self, script: Script) -> None:
        super().__init__()
        self.script = script

    def call(self, messages: Any, tools: Any) -> ChatMessageToolCallFunction:
        results = [str(message.content) for message in messages if message.role == MessageRole.TOOL_RESPONSE]
        reply = self.script.reply([tool.name for tool in tools or ()], results)
        if isinstance(reply, str):
            reply = Call("final_answer", {"answer": reply})
        return ChatMessageToolCallFunction(name=reply.name, arguments=reply.arguments)

    def generate(self, messages: Any, tools_to_call_from: Any = None, **_: Any) -> ChatMessage:
        function = self.call(messages, tools_to_call_from)
        call = ChatMessageToolCall(id=f"c{len(self.script.shown)}", type="function", function=function)
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=[call])

    def generate_stream(self, messages: Any, tools_to_call_from: Any = None, **_: Any) -> Any:
        function = self.call(messages, tools_to_call_from)
        name, place = function.name, f"c{len(self.script.shown)}"
        for half in halves(json.dumps(function.arguments)):
            part = ChatMessageToolCallFunction(name=name, arguments=half)
            call = ChatMessageToolCallStreamDelta(index=0, id=place, type="function", function=part)
            yield ChatMessageStreamDelta(tool_calls=[call])
            name = ""


class FunctionTool(Tool):
    skip_forward_signature_validation = True
    output_type = "string"

    def __init__(self, function: Any) -> None:
        self.name = function.__name__
        self.description = function.__doc__ or ""
        self.inputs = {"id": {"type": "string", "description": "The id", "nullable": True}}
        self.forward = function
        super().__init__()


FunctionTool.__module__ = "agents.tools"
"""A program's own package may have the name of another framework's."""


class SmolAgents(Driver):
    def __init__(self, board: Board) -> None:
        self.selector = ToolSelector(board)

    def agent(self, script: Script, tools: Sequence[Any], **more: Any) -> PegboardToolCallingAgent:
        return PegboardToolCallingAgent(
            list(tools), Scripted(script), selector=self.selector, verbosity_level=0, max_steps=6, **more
        )

    async def run(self, ask: str, script: Script, functions: Functions, *, stream: bool = False) -> str:
        if not stream:
            return str(await asyncio.to_thread(self.agent(script, self.tools(functions)).run, ask))
        agent = self.agent(script, self.tools(functions), stream_outputs=True)
        steps = await asyncio.to_thread(lambda: list(agent.run(ask, stream=True)))
        for step in steps:
            if isinstance(step, ChatMessageStreamDelta):
                script.streamed += [call.function.arguments for call in step.tool_calls]
        return str(steps[-1].output)

    async def run_with_handoff(self, ask: str, script: Script, functions: Functions) -> str:
        """An agent that manages a second one."""
        shown: list[list[str]] = []
        rest = Script(script.steps[1:])
        tools = self.tools(functions)
        second = self.agent(rest, tools, name="expert", description="Knows everything")

        def delegate(names: Sequence[str]) -> Any:
            reply = script.steps[0]([name for name in names if name == "expert"])
            return Call(reply.name, {"task": ask}) if isinstance(reply, Call) else reply

        first = self.agent(Script([delegate, "done"], shown), tools, managed_agents=[second])
        said = str(await asyncio.to_thread(first.run, ask))
        script.shown[:] = [shown[0], *rest.shown]
        return said

    def tools(self, functions: Functions) -> list[Any]:
        return [FunctionTool(each) for each in functions]

    def messages(self, ask: str) -> list[Any]:
        function = ChatMessageToolCallFunction(name="get_invoice", arguments={})
        call = ChatMessageToolCall(id="c", type="function", function=function)
        return [
            ChatMessage(role=MessageRole.USER, content=[{"type": "text", "text": ask}]),
            ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=[call]),
            ChatMessage(role=MessageRole.TOOL_RESPONSE, content=[{"type": "text", "text": "Observation: ok"}]),
            ChatMessage(role=MessageRole.ASSISTANT, content="It is there."),
        ]

    async def select(self, ask: str, tools: Sequence[Any]) -> object:
        return await self.selector.reading(once=True).select(tools, [ChatMessage(role=MessageRole.USER, content=ask)])


async def conversations(driver: SmolAgents) -> dict[str, Any]:
    """Whether the tool that a search found is shown at each step of: the conversation, its continuation, a new one,
    and a new one whose steps are streamed."""
    search = Call("search_tools", {"query": "translate the text of a telescope"})
    script = Script([search, "done"])
    agent = driver.agent(script, driver.tools(functions()))
    await asyncio.to_thread(agent.run, ASKS[0][1])
    await asyncio.to_thread(agent.run, ASKS[1][1], reset=False)
    await asyncio.to_thread(agent.run, ASKS[2][1])
    script.steps = [*["done"] * len(script.shown), search, "done"]
    await asyncio.to_thread(lambda: list(agent.run(ASKS[3][1], stream=True)))
    return {"shown": ["translate_telescope" in shown for shown in script.shown]}


main(SmolAgents, conversations=conversations)
