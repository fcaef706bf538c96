"""agent-framework: `pegboard_middleware`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
    tool,
)
from scenario import Call, Driver, Functions, Script, halves, main

from pegboard import Board
from pegboard.adapters.agent_framework import pegboard_middleware
from pegboard.adapters.selection import ToolSelector

HOSTED = {"type": "web_search"}
"""A tool that a provider runs is a dictionary."""


class Scripted(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    def __init__(self, script: Script) -> None:
        super().__init__()
        self.script = script

    def answer(self, messages: Sequence[Message], options: Any) -> Content:
        parts = [part for message in messages for part in message.contents]
        results = [str(part.result) for part in parts if part.type == "function_result"]
        tools = [each for each in options.get("tools") or () if each is not HOSTED]
        reply = self.script.reply([each.name for each in tools], results)
        if isinstance(reply, Call):
            number, arguments = f"c{len(self.script.shown)}", reply.text
            return Content.from_function_call(call_id=number, name=reply.name, arguments=arguments)
        return Content.from_text(reply)

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_: Any) -> Any:
        if stream:

            async def streamed() -> Any:
                answer = self.answer(messages, options)
                texts = [Content.from_text(half) for half in halves(answer.text)] if answer.text else [answer]
                for content in texts:
                    yield ChatResponseUpdate(role="assistant", contents=[content])

            return ResponseStream(streamed(), finalizer=ChatResponse.from_updates)

        async def whole() -> ChatResponse:
            return ChatResponse(messages=[Message(role="assistant", contents=[self.answer(messages, options)])])

        return whole()


class AgentFramework(Driver):
    def __init__(self, board: Board) -> None:
        self.selector = ToolSelector(board)
        self.middleware = pegboard_middleware(self.selector)

    def agent(self, script: Script, tools: Sequence[Any], **more: Any) -> Agent:
        return Agent(Scripted(script), tools=list(tools), middleware=[self.middleware], **more)

    async def run(self, ask: str, script: Script, functions: Functions, *, stream: bool = False) -> str:
        agent = self.agent(script, [HOSTED, *self.tools(functions)])
        if not stream:
            return str((await agent.run(ask)).text)
        running = agent.run(ask, stream=True)
        async for update in running:
            script.streamed.append(update.text)
        return str((await running.get_final_response()).text)

    async def run_forced(self, ask: str, script: Script, functions: Functions, name: str) -> str:
        choice = {"mode": "required", "required_function_name": name}
        agent = self.agent(script, [HOSTED, *self.tools(functions)])
        return str((await agent.run(ask, options={"tool_choice": choice})).text)

    async def run_with_handoff(self, ask: str, script: Script, functions: Functions) -> str:
        """An agent that has a second one as a tool."""
        tools = self.tools(functions)
        second = self.agent(Script(script.steps[1:], script.shown), tools, name="expert", description="Knows all")
        expert = second.as_tool(name="delegate_to_expert", arg_name="task", approval_mode="never_require")
        shown: list[list[str]] = []

        def hand_off(names: Sequence[str]) -> Any:
            reply = script.steps[0](names)
            return Call(reply.name, {"task": ask}) if isinstance(reply, Call) else reply

        own = Script([hand_off, "done"], shown)
        first = self.agent(own, [*tools, expert], name="office")
        second.client.script.steps = [script.steps[0], *script.steps[1:]]
        script.shown.append([])
        said = str((await first.run(ask)).text)
        script.shown[0] = shown[0]
        return said

    def tools(self, functions: Functions) -> list[Any]:
        return [tool(each, approval_mode="never_require") for each in functions]

    def messages(self, ask: str) -> list[Any]:
        return [
            Message(role="user", contents=[ask]),
            Message(role="assistant", contents=[Content.from_function_call(call_id="c", name="get_invoice")]),
            Message(role="tool", contents=[Content.from_function_result(call_id="c", result="ok")]),
            Message(role="assistant", contents=["It is there."]),
        ]

    async def select(self, ask: str, tools: Sequence[Any]) -> object:
        return await self.selector.reading(once=True).select(tools, [Message(role="user", contents=[ask])])


main(AgentFramework)
