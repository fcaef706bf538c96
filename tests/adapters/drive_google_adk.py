"""google-adk: `PegboardPlugin`."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Sequence
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.events import Event
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool
from google.genai import types
from scenario import ASKS, Call, Driver, Functions, Script, functions, halves, main

from pegboard import Board
from pegboard.adapters import google_adk
from pegboard.adapters.google_adk import PegboardPlugin, declared
from pegboard.adapters.selection import ToolSelector, TurnTools


class Scripted(BaseLlm):
    script: Any = None

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncIterator[LlmResponse]:
        declarations = [each for tool in llm_request.config.tools or () for each in tool.function_declarations or ()]
        parts = [part for content in llm_request.contents for part in content.parts or ()]
        results = [str(part.function_response.response) for part in parts if part.function_response]
        reply = self.script.reply([each.name for each in declarations], results)
        if isinstance(reply, Call):
            part = types.Part(function_call=types.FunctionCall(name=reply.name, args=reply.arguments))
        else:
            part = types.Part(text=reply)
        if stream and part.text:
            for half in halves(part.text):
                yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=half)]), partial=True)
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


class GoogleADK(Driver):
    def __init__(self, board: Board) -> None:
        self.selector = ToolSelector(board)
        self.declarations: Any = None

    async def run(self, ask: str, script: Script, functions: Functions, *, stream: bool = False) -> str:
        agent = LlmAgent(name="office", model=Scripted(model="scripted", script=script), tools=self.tools(functions))
        return await self._ended(agent, ask, script.streamed if stream else None)

    async def run_forced(self, ask: str, script: Script, functions: Functions, name: str) -> str:
        calling = types.FunctionCallingConfig(mode="ANY", allowed_function_names=[name])
        config = types.GenerateContentConfig(tool_config=types.ToolConfig(function_calling_config=calling))
        model, tools = Scripted(model="scripted", script=script), self.tools(functions)
        return await self._ended(LlmAgent(name="office", model=model, tools=tools, generate_content_config=config), ask)

    async def run_with_handoff(self, ask: str, script: Script, functions: Functions) -> str:
        model, tools = Scripted(model="scripted", script=script), self.tools(functions)
        second = LlmAgent(name="expert", description="Knows everything", model=model, tools=tools)
        first = LlmAgent(name="office", model=model, tools=tools, sub_agents=[second])
        return await self._ended(first, ask)

    async def _ended(self, agent: LlmAgent, ask: str, streamed: list[str] | None = None) -> str:
        runner = InMemoryRunner(agent=agent, app_name="app", plugins=[PegboardPlugin(self.selector)])
        session = await runner.session_service.create_session(app_name="app", user_id="u")
        said = ""
        mode = StreamingMode.NONE if streamed is None else StreamingMode.SSE
        async for event in runner.run_async(
            user_id="u",
            session_id=session.id,
            new_message=types.Content(role="user", parts=[types.Part(text=ask)]),
            run_config=RunConfig(streaming_mode=mode),
        ):
            texts = [part.text for part in (event.content.parts if event.content else None) or () if part.text]
            if streamed is not None and event.partial:
                streamed += texts
            said = texts[-1] if texts else said
        return said

    def tools(self, functions: Functions) -> list[Any]:
        return [FunctionTool(each) for each in functions]

    def messages(self, ask: str) -> list[Any]:
        def event(author: str, role: str, part: types.Part) -> Event:
            return Event(author=author, content=types.Content(role=role, parts=[part]))

        call = types.FunctionCall(name="get_invoice", args={})
        answer = types.FunctionResponse(name="get_invoice", response={"result": "ok"})
        return [
            event("user", "user", types.Part(text=ask)),
            event("office", "model", types.Part(function_call=call)),
            event("office", "user", types.Part(function_response=answer)),
            event("office", "model", types.Part(text="It is there.")),
        ]

    async def select(self, ask: str, tools: Sequence[Any]) -> object:
        if self.declarations is None:  # the framework makes them in any case
            self.declarations = [tool._get_declaration() for tool in tools]
        return await self.selector.reading(declared).select(self.declarations, ask)


ENDED = 8
"""Runs that end with an error, and as many that are cancelled."""


class Failing(BaseLlm):
    """A model that fails, or that answers when it is too late."""

    fails: bool
    asked: Any = None

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncIterator[LlmResponse]:
        self.asked.set()
        if self.fails:
            raise ConnectionError
        await asyncio.Event().wait()
        yield LlmResponse()


async def ended_runs(driver: GoogleADK) -> dict[str, Any]:
    """How many turns are kept of runs that ended with an error, and of cancelled ones where three are kept at most."""
    google_adk.MOST_TURNS = 3
    plugin = PegboardPlugin(driver.selector)
    kept = []
    for fails in (True, False):
        model = Failing(model="failing", fails=fails, asked=asyncio.Event())
        agent = LlmAgent(name="office", model=model, tools=driver.tools(functions(("get",))))
        runner = InMemoryRunner(agent=agent, app_name="app", plugins=[plugin])
        for _ in range(ENDED):
            run = asyncio.create_task(_run(runner, ASKS[0][1]))
            await model.asked.wait()
            model.asked.clear()
            if not fails:
                run.cancel()
            await asyncio.wait([run])
            del run
        gc.collect()
        kept.append(sum(isinstance(each, TurnTools) for each in gc.get_objects()))
    return {"runs": ENDED, "after_errors": kept[0], "after_cancellations": kept[1]}


async def _run(runner: InMemoryRunner, ask: str) -> None:
    session = await runner.session_service.create_session(app_name="app", user_id="u")
    said = types.Content(role="user", parts=[types.Part(text=ask)])
    async for _ in runner.run_async(user_id="u", session_id=session.id, new_message=said):
        pass


main(GoogleADK, ended_runs=ended_runs)
