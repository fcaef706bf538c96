"""openai-agents: `PegboardAgent` and `RunSelector`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
    ResponseUsage,
)
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails
from scenario import ASKS, CALLS, Call, Driver, Functions, Script, functions, halves, main

from agents import (
    Agent,
    Model,
    ModelResponse,
    ModelSettings,
    RawResponsesStreamEvent,
    Runner,
    RunState,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from pegboard import Board
from pegboard.adapters.openai_agents import PegboardAgent, RunSelector

set_tracing_disabled(True)


class Scripted(Model):
    def __init__(self, script: Script) -> None:
        self.script = script

    def output(self, _instructions: Any = None, said: Any = None, _settings: Any = None, tools: Any = (),
               _schema: Any = None, handoffs: Any = (), *_: Any, **more: Any) -> list[Any]:  # fmt: skip
        said = more.get("input", said)
        items = said if isinstance(said, list) else []
        results = [str(each["output"]) for each in items if each.get("type") == "function_call_output"]
        names = [*(tool.name for tool in tools), *(handoff.tool_name for handoff in handoffs)]
        reply = self.script.reply(names, results)
        if isinstance(reply, Call):
            number, said_arguments = len(self.script.shown), reply.text
            return [
                ResponseFunctionToolCall(
                    type="function_call", call_id=f"c{number}", name=reply.name, arguments=said_arguments
                )
            ]
        text = ResponseOutputText(type="output_text", text=reply, annotations=[])
        return [ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])]

    async def get_response(self, *_: Any, **asked: Any) -> ModelResponse:
        return ModelResponse(output=self.output(**asked), usage=Usage(), response_id=None)

    async def stream_response(self, *given: Any, **asked: Any) -> Any:
        output = self.output(*given, **asked)
        if isinstance(output[0], ResponseOutputMessage):
            for half in halves(output[0].content[0].text):
                yield ResponseTextDeltaEvent(
                    type="response.output_text.delta",
                    delta=half,
                    item_id="m",
                    content_index=0,
                    output_index=0,
                    sequence_number=0,
                    logprobs=[],
                )
        usage = ResponseUsage(
            input_tokens=1,
            output_tokens=1,
            total_tokens=2,
            input_tokens_details=InputTokensDetails(cached_tokens=0, cache_write_tokens=0),
            output_tokens_details=OutputTokensDetails(reasoning_tokens=0),
        )
        response = Response(
            id="r",
            created_at=0,
            model="scripted",
            object="response",
            output=output,
            tool_choice="auto",
            tools=[],
            parallel_tool_calls=False,
            usage=usage,
        )
        yield ResponseCompletedEvent(type="response.completed", response=response, sequence_number=0)


class OpenAIAgents(Driver):
    def __init__(self, board: Board) -> None:
        self.board = board
        self.selector = RunSelector(board)

    async def run(self, ask: str, script: Script, functions: Functions, *, stream: bool = False) -> str:
        agent = PegboardAgent(
            name="office", tools=self.tools(functions), model=Scripted(script), selector=self.selector
        )
        return await self._ended(agent, ask, script.streamed if stream else None)

    async def run_forced(self, ask: str, script: Script, functions: Functions, name: str) -> str:
        agent = PegboardAgent(
            name="office",
            tools=self.tools(functions),
            model=Scripted(script),
            selector=self.selector,
            model_settings=ModelSettings(tool_choice=name),
        )
        return await self._ended(agent, ask)

    async def run_with_handoff(self, ask: str, script: Script, functions: Functions) -> str:
        model, tools = Scripted(script), self.tools(functions)
        second = PegboardAgent(name="expert", tools=tools, model=model, selector=self.selector)
        first = PegboardAgent(name="office", tools=tools, model=model, selector=self.selector, handoffs=[second])
        return await self._ended(first, ask)

    async def _ended(self, agent: Agent[Any], ask: str, streamed: list[str] | None = None) -> str:
        config = self.selector.run_config()
        if streamed is None:
            return str((await Runner.run(agent, ask, run_config=config)).final_output)
        running = Runner.run_streamed(agent, ask, run_config=config)
        async for event in running.stream_events():
            if isinstance(event, RawResponsesStreamEvent) and isinstance(event.data, ResponseTextDeltaEvent):
                streamed.append(event.data.delta)
        return str(running.final_output)

    def tools(self, functions: Functions) -> list[Any]:
        return [function_tool(each) for each in functions]

    def messages(self, ask: str) -> list[Any]:
        return [
            {"role": "user", "content": ask},
            ResponseFunctionToolCall(type="function_call", call_id="c", name="get_invoice", arguments="{}"),
            {"type": "function_call_output", "call_id": "c", "output": "ok"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is there."}]},
        ]

    async def select(self, ask: str, tools: Sequence[object]) -> object:
        return await self.selector.select(tools, [{"role": "user", "content": ask}])


async def resumed(driver: OpenAIAgents) -> dict[str, Any]:
    """A call of a tool that a search found is approved in another process, which has the run's JSON alone."""
    CALLS.clear()
    search = Call("search_tools", {"query": "translate the text of a telescope"})
    scripts = [Script([search, Call("translate_telescope")]), Script(["done"])]
    tools = [function_tool(each, needs_approval=each.__name__ == "translate_telescope") for each in functions()]
    first, second = (
        PegboardAgent(name="office", tools=tools, model=Scripted(script), selector=RunSelector(driver.board))
        for script in scripts
    )
    asked = await Runner.run(first, ASKS[0][1], run_config=first.selector.run_config())
    state = await RunState.from_json(second, asked.to_state().to_json())
    interruptions = state.get_interruptions()
    for each in interruptions:
        state.approve(each)
    ended = await Runner.run(second, state, run_config=second.selector.run_config())
    return {"asked": len(interruptions), "ran": list(CALLS), "said": str(ended.final_output)}


main(OpenAIAgents, resumed=resumed)
