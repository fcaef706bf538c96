"""crewai: `PegboardHook`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from crewai import Agent, BaseLLM, Crew, Task
from crewai.llms.base_llm import llm_call_context
from crewai.tools import tool
from scenario import Call, Driver, Functions, Script, halves, main

from pegboard import Board
from pegboard.adapters.crewai import PegboardHook, offered
from pegboard.adapters.selection import ToolSelector


class Scripted(BaseLLM):
    script: Any = None

    def supports_function_calling(self) -> bool:
        return True

    def call(self, messages: Any, tools: Any = None, **more: Any) -> Any:
        if more.get("from_agent") is not None and not self._invoke_before_llm_call_hooks(messages, more["from_agent"]):
            raise ValueError("blocked")
        results = [str(message["content"]) for message in messages if message.get("role") == "tool"]
        reply = self.script.reply([each["function"]["name"] for each in tools or ()], results)
        if isinstance(reply, Call):
            function = {"name": reply.name, "arguments": reply.text}
            return [{"id": f"c{len(self.script.shown)}", "type": "function", "function": function}]
        if self.stream:
            with llm_call_context():
                for half in halves(reply):
                    self._emit_stream_chunk_event(half, more.get("from_task"), more.get("from_agent"))
        return reply


class CrewAI(Driver):
    def __init__(self, board: Board) -> None:
        self.selector = ToolSelector(board)
        self.hook = PegboardHook(self.selector)
        self.hook.__enter__()
        self.shown: Any = None

    def agent(self, script: Script, functions: Functions, **more: Any) -> Agent:
        fields = {"role": "office", "goal": "Help", "backstory": "You work in an office", **more}
        model = Scripted(model="scripted", script=script)
        return Agent(llm=model, tools=self.tools(functions), verbose=False, **fields)

    async def run(self, ask: str, script: Script, functions: Functions, *, stream: bool = False) -> str:
        return await self._ended([self.agent(script, functions)], ask, script.streamed if stream else None)

    async def run_with_handoff(self, ask: str, script: Script, functions: Functions) -> str:
        """An agent that delegates to a coworker by crewAI's own tool."""
        shown: list[list[str]] = []
        rest = Script(script.steps[1:])

        def delegate(names: Sequence[str]) -> Any:
            reply = script.steps[0](names)
            arguments = {"task": ask, "context": ask, "coworker": "expert"}
            return Call(reply.name, arguments) if isinstance(reply, Call) else reply

        first = self.agent(Script([delegate, "done"], shown), functions, allow_delegation=True)
        second = self.agent(rest, functions, role="expert")
        said = await self._ended([first, second], ask)
        script.shown[:] = [shown[0], *rest.shown]
        return said

    async def _ended(self, agents: list[Agent], ask: str, streamed: list[str] | None = None) -> str:
        task = Task(description=ask, expected_output="A line", agent=agents[0])
        crew = Crew(agents=agents, tasks=[task], verbose=False, stream=streamed is not None)
        if streamed is None:
            return str(await asyncio.to_thread(crew.kickoff))
        running = await crew.kickoff_async()
        async for chunk in running:
            streamed.append(chunk.content)
        return str(running.result)

    def tools(self, functions: Functions) -> list[Any]:
        return [tool(each.__name__)(each) for each in functions]

    def messages(self, ask: str) -> list[Any]:
        call = {"id": "c", "type": "function", "function": {"name": "get_invoice", "arguments": "{}"}}
        return [
            {"role": "user", "content": ask},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "name": "get_invoice", "content": "ok"},
            {"role": "assistant", "content": "It is there."},
        ]

    async def select(self, ask: str, tools: Sequence[Any]) -> object:
        if self.shown is None:  # the framework makes them in any case, once for a task
            self.shown = [
                {"type": "function", "function": {"name": each.name, "description": each.description, "parameters": {}}}
                for each in tools
            ]
        return await self.selector.reading(offered).select(self.shown, ask)


main(CrewAI)
