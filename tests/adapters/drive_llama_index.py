"""llama-index: `PegboardFunctionAgent`, alone and in an `AgentWorkflow`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.agent.workflow import AgentStream, AgentWorkflow
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata, ToolCallBlock
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.tools import FunctionTool
from scenario import Call, Driver, Functions, Script, halves, main

from pegboard import Board
from pegboard.adapters.llama_index import PegboardFunctionAgent
from pegboard.adapters.selection import ToolSelector


class Scripted(FunctionCallingLLM):
    script: Any = None

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True, is_chat_model=True)

    def _answer(self, history: Sequence[ChatMessage], tools: Sequence[Any]) -> ChatResponse:
        results = [message.content or "" for message in history if message.role.value == "tool"]
        reply = self.script.reply([tool.metadata.name for tool in tools], results)
        if isinstance(reply, Call):
            block = ToolCallBlock(
                tool_call_id=f"c{len(self.script.shown)}", tool_name=reply.name, tool_kwargs=reply.arguments
            )
            return ChatResponse(message=ChatMessage(role="assistant", blocks=[block]))
        return ChatResponse(message=ChatMessage(role="assistant", content=reply), delta=reply)

    async def achat_with_tools(self, tools: Any, user_msg: Any = None, chat_history: Any = None, **_: Any) -> Any:
        return self._answer(chat_history, tools)

    async def astream_chat_with_tools(
        self, tools: Any, user_msg: Any = None, chat_history: Any = None, **_: Any
    ) -> Any:
        async def streamed() -> Any:
            answer = self._answer(chat_history, tools)
            said = answer.message.content or ""
            for end, half in enumerate(halves(said) if said else ()):
                so_far = ChatMessage(role="assistant", content=said if end else half)
                yield ChatResponse(message=so_far, delta=half)
            if not said:
                yield answer

        return streamed()

    def get_tool_calls_from_response(self, response: Any, error_on_no_tool_call: bool = True, **_: Any) -> Any:
        blocks = [block for block in response.message.blocks if isinstance(block, ToolCallBlock)]
        return [
            ToolSelection(tool_id=each.tool_call_id, tool_name=each.tool_name, tool_kwargs=each.tool_kwargs)
            for each in blocks
        ]

    def _prepare_chat_with_tools(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    chat = complete = stream_chat = stream_complete = _prepare_chat_with_tools
    achat = acomplete = astream_chat = astream_complete = _prepare_chat_with_tools


class LlamaIndex(Driver):
    def __init__(self, board: Board) -> None:
        self.selector = ToolSelector(board)

    def agent(self, script: Script, functions: Functions, **more: Any) -> PegboardFunctionAgent:
        model = Scripted(script=script)
        return PegboardFunctionAgent(tools=self.tools(functions), llm=model, selector=self.selector, **more)

    async def run(self, ask: str, script: Script, functions: Functions, *, stream: bool = False) -> str:
        running = self.agent(script, functions, streaming=stream).run(ask)
        if stream:
            async for event in running.stream_events():
                if isinstance(event, AgentStream):
                    script.streamed.append(event.delta)
        return str(await running)

    async def run_forced(self, ask: str, script: Script, functions: Functions, name: str) -> str:
        return str(await self.agent(script, functions, initial_tool_choice=name).run(ask))

    async def run_with_handoff(self, ask: str, script: Script, functions: Functions) -> str:
        wrapped = Script([*script.steps])
        wrapped.shown, wrapped.results = script.shown, script.results

        def hand_off(tools: Sequence[str]) -> Any:
            reply = script.steps[0](tools)
            return Call(reply.name, {"to_agent": "expert", "reason": "asked"}) if isinstance(reply, Call) else reply

        wrapped.steps = [hand_off, *script.steps[1:]]
        second = self.agent(wrapped, functions, name="expert", description="Knows everything")
        first = self.agent(wrapped, functions, name="office", description="Asks", can_handoff_to=["expert"])
        return str(await AgentWorkflow(agents=[first, second], root_agent="office").run(ask))

    def tools(self, functions: Functions) -> list[Any]:
        return [FunctionTool.from_defaults(fn=each) for each in functions]

    def messages(self, ask: str) -> list[Any]:
        block = ToolCallBlock(tool_call_id="c", tool_name="get_invoice", tool_kwargs={})
        return [
            ChatMessage(role="user", content=ask),
            ChatMessage(role="assistant", blocks=[block]),
            ChatMessage(role="tool", content="ok", additional_kwargs={"tool_call_id": "c"}),
            ChatMessage(role="assistant", content="It is there."),
        ]

    async def select(self, ask: str, tools: Sequence[Any]) -> object:
        return await self.selector.reading(once=True).select(tools, [ChatMessage(role="user", content=ask)])


main(LlamaIndex)
