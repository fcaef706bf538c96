"""smolagents: `PegboardToolCallingAgent`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from scenario import Call, Driver, Functions, Script, main
from smolagents import Tool
from smolagents.models import (
    ChatMessage,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
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

    def generate(self, messages: Any, tools_to_call_from: Any = None, **_: Any) -> ChatMessage:
        results = [str(message.content) for message in messages if message.role == MessageRole.TOOL_RESPONSE]
        reply = self.script.reply([tool.name for tool in tools_to_call_from or ()], results)
        if isinstance(reply, str):
            reply = Call("final_answer", {"answer": reply})
        function = ChatMessageToolCallFunction(name=reply.name, arguments=reply.arguments)
        call = ChatMessageToolCall(id=f"c{len(self.script.shown)}", type="function", function=function)
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=[call])


class FunctionTool(Tool):
    skip_forward_signature_validation = True
    output_type = "string"

    def __init__(self, function: Any) -> None:
        self.name = function.__name__
        self.description = function.__doc__ or ""
        self.inputs = {"id": {"type": "string", "description": "The id", "nullable": True}}
        self.forward = function
        super().__init__()


class SmolAgents(Driver):
    streams = False

    def __init__(self, board: Board) -> None:
        self.selector = ToolSelector(board)

    def agent(self, script: Script, tools: Sequence[Any], **more: Any) -> PegboardToolCallingAgent:
        return PegboardToolCallingAgent(
            list(tools), Scripted(script), selector=self.selector, verbosity_level=0, max_steps=6, **more
        )

    async def run(self, ask: str, script: Script, functions: Functions, *, stream: bool = False) -> str:
        return str(await asyncio.to_thread(self.agent(script, self.tools(functions)).run, ask))

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


main(SmolAgents)
