"""autogen: `PegboardWorkbench`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import Handoff
from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
from autogen_agentchat.messages import ModelClientStreamingChunkEvent, TextMessage
from autogen_agentchat.teams import Swarm
from autogen_agentchat.tools import AgentTool
from autogen_core import FunctionCall
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    CreateResult,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    ModelFamily,
    RequestUsage,
    UserMessage,
)
from autogen_core.tools import FunctionTool, StaticStreamWorkbench, StaticWorkbench
from scenario import Call, Driver, Functions, Script, functions, halves, main

from pegboard import Board
from pegboard.adapters.autogen import PegboardWorkbench, listed
from pegboard.adapters.selection import ToolSelector


class Scripted(ChatCompletionClient):
    component_type = "model"
    component_config_schema = None

    def __init__(self, script: Script) -> None:
        self.script = script

    async def create(self, messages: Sequence[Any], *, tools: Sequence[Any] = (), **_: Any) -> CreateResult:
        names = [tool["name"] if isinstance(tool, dict) else tool.name for tool in tools]
        answers = [each for each in messages if isinstance(each, FunctionExecutionResultMessage)]
        results = [result.content for answer in answers for result in answer.content]
        reply = self.script.reply(names, results)
        content: Any = reply
        if isinstance(reply, Call):
            number = f"c{len(self.script.shown)}"
            content = [FunctionCall(id=number, name=reply.name, arguments=reply.text)]
        reason = "function_calls" if isinstance(reply, Call) else "stop"
        return CreateResult(finish_reason=reason, content=content, usage=self.actual_usage(), cached=False)

    async def create_stream(self, messages: Sequence[Any], **more: Any) -> Any:
        result = await self.create(messages, **more)
        if isinstance(result.content, str):
            for half in halves(result.content):
                yield half
        yield result

    async def close(self) -> None:
        pass

    def actual_usage(self) -> RequestUsage:
        return RequestUsage(prompt_tokens=0, completion_tokens=0)

    total_usage = actual_usage

    def count_tokens(self, messages: Any, **_: Any) -> int:
        return 0

    remaining_tokens = count_tokens

    @property
    def capabilities(self) -> Any:
        return self.model_info

    @property
    def model_info(self) -> Any:
        return {
            "vision": False,
            "function_calling": True,
            "json_output": False,
            "family": ModelFamily.UNKNOWN,
            "structured_output": False,
            "multiple_system_messages": True,
        }


class AutoGen(Driver):
    def __init__(self, board: Board) -> None:
        self.selector = ToolSelector(board)
        self.schemas: Any = None

    def agent(self, name: str, script: Script, functions: Functions, **more: Any) -> AssistantAgent:
        context = UnboundedChatCompletionContext()
        workbench = PegboardWorkbench(StaticWorkbench(self.tools(functions)), context, self.selector)
        return AssistantAgent(
            name, Scripted(script), workbench=workbench, model_context=context, max_tool_iterations=6, **more
        )

    async def run(self, ask: str, script: Script, functions: Functions, *, stream: bool = False) -> str:
        agent = self.agent("office", script, functions, model_client_stream=stream)
        if not stream:
            return str((await agent.run(task=ask)).messages[-1].content)
        events = [event async for event in agent.run_stream(task=ask)]
        script.streamed += [event.content for event in events if isinstance(event, ModelClientStreamingChunkEvent)]
        return str(events[-1].messages[-1].content)

    async def run_with_handoff(self, ask: str, script: Script, functions: Functions) -> str:
        first = self.agent("office", script, functions, handoffs=[Handoff(target="expert")])
        second = self.agent("expert", script, functions)
        team = Swarm([first, second], termination_condition=TextMentionTermination("done") | MaxMessageTermination(9))
        return str((await team.run(task=ask)).messages[-1].content)

    def tools(self, functions: Functions) -> list[Any]:
        return [FunctionTool(each, description=each.__doc__ or "") for each in functions]

    def messages(self, ask: str) -> list[Any]:
        answer = FunctionExecutionResult(content="ok", name="get_invoice", call_id="c", is_error=False)
        return [
            UserMessage(content=ask, source="user"),
            AssistantMessage(content=[FunctionCall(id="c", name="get_invoice", arguments="{}")], source="office"),
            FunctionExecutionResultMessage(content=[answer]),
            AssistantMessage(content="It is there.", source="office"),
        ]

    async def select(self, ask: str, tools: Sequence[Any]) -> object:
        if self.schemas is None:  # the framework makes them in any case
            self.schemas = [tool.schema for tool in tools]
        return await self.selector.reading(listed).select(self.schemas, [UserMessage(content=ask, source="user")])


async def agent_as_tool(driver: AutoGen) -> dict[str, Any]:
    """Who said something while an agent was at work whose tool is another agent."""
    inner = AssistantAgent("expert", Scripted(Script(["It is paid."])))
    context = UnboundedChatCompletionContext()
    tools = [AgentTool(inner, return_value_as_last_message=True), *driver.tools(functions())]
    workbench = PegboardWorkbench(StaticStreamWorkbench(tools), context, driver.selector)
    script = Script([Call("expert", {"task": "Is it paid?"}), Call("delete_telescope"), "done"])
    agent = AssistantAgent(
        "office", Scripted(script), workbench=workbench, model_context=context, max_tool_iterations=6
    )
    events = [event async for event in agent.run_stream(task="Ask the expert: is the invoice paid?")]
    said = [[event.source, event.content] for event in events if isinstance(event, TextMessage)]
    return {"said": said, "results": script.results}


main(AutoGen, agent_as_tool=agent_as_tool)
