"""haystack: `pegboard_hooks`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from haystack import component
from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage, StreamingChunk, ToolCall
from haystack.tools import Tool
from scenario import SCHEMA, Call, Driver, Functions, Script, halves, main

from pegboard import Board
from pegboard.adapters.haystack import pegboard_hooks
from pegboard.adapters.selection import ToolSelector


@component
class Scripted:
    def __init__(self, script: Script) -> None:
        self.script = script

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: Any = None, streaming_callback: Any = None) -> Any:
        results = [each.result for message in messages for each in message.tool_call_results]
        reply = self.script.reply([tool.name for tool in tools or ()], results)
        for half in halves(reply) if isinstance(reply, str) and streaming_callback else ():
            streaming_callback(StreamingChunk(content=half))
        if isinstance(reply, Call):
            call = ToolCall(id=f"c{len(self.script.shown)}", tool_name=reply.name, arguments=reply.arguments)
            return {"replies": [ChatMessage.from_assistant(tool_calls=[call])]}
        return {"replies": [ChatMessage.from_assistant(reply)]}

    @component.output_types(replies=list[ChatMessage])
    async def run_async(self, messages: list[ChatMessage], tools: Any = None, streaming_callback: Any = None) -> Any:
        parts: list[StreamingChunk] = []
        answer = self.run(messages, tools, parts.append if streaming_callback else None)
        for part in parts:
            await streaming_callback(part)
        return answer


class Haystack(Driver):
    def __init__(self, board: Board) -> None:
        self.selector = ToolSelector(board)
        self.hooks = dict(pegboard_hooks(self.selector))

    async def run(self, ask: str, script: Script, functions: Functions, *, stream: bool = False) -> str:
        agent = Agent(chat_generator=Scripted(script), tools=self.tools(functions), hooks=self.hooks)

        async def note(chunk: StreamingChunk) -> None:
            script.streamed.append(chunk.content)

        more = {"streaming_callback": note} if stream else {}
        result = await agent.run_async(messages=[ChatMessage.from_user(ask)], **more)
        return str(result["messages"][-1].text)

    async def run_with_handoff(self, ask: str, script: Script, functions: Functions) -> str:
        """An agent that has a second one as a tool."""
        shown: list[list[str]] = []
        rest = Script(script.steps[1:])
        second = Agent(chat_generator=Scripted(rest), tools=self.tools(functions), hooks=self.hooks)
        expert = Tool(
            name="delegate_to_expert",
            description="Delegate work to the expert",
            parameters={"type": "object", "properties": {}},
            function=lambda: str(second.run(messages=[ChatMessage.from_user(ask)])["messages"][-1].text),
        )
        own = Script([script.steps[0], "done"], shown)
        tools = [*self.tools(functions), expert]
        first = Agent(chat_generator=Scripted(own), tools=tools, hooks=self.hooks)
        result = await first.run_async(messages=[ChatMessage.from_user(ask)])
        script.shown[:] = [shown[0], *rest.shown]
        return str(result["messages"][-1].text)

    def tools(self, functions: Functions) -> list[Any]:
        return [
            Tool(name=each.__name__, description=each.__doc__ or "", parameters=SCHEMA, function=each)
            for each in functions
        ]

    def messages(self, ask: str) -> list[Any]:
        call = ToolCall(id="c", tool_name="get_invoice", arguments={})
        return [
            ChatMessage.from_user(ask),
            ChatMessage.from_assistant(tool_calls=[call]),
            ChatMessage.from_tool("ok", origin=call),
            ChatMessage.from_assistant("It is there."),
        ]

    async def select(self, ask: str, tools: Sequence[Any]) -> object:
        return await self.selector.reading(once=True).select(tools, [ChatMessage.from_user(ask)])


main(Haystack)
