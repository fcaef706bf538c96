"""dspy: `PegboardReAct`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import dspy
from dspy.clients.engines.streaming import EngineChunk
from scenario import Call, Driver, Functions, Script, main

from pegboard import Board
from pegboard.adapters.dspy import PegboardReAct
from pegboard.adapters.selection import ToolSelector


class Scripted(dspy.BaseLM):
    def __init__(self, script: Script) -> None:
        super().__init__(model="scripted", cache=False)
        self.script = script

    def answer(self, messages: Any) -> str:
        text = str(messages)
        if "next_tool_name" not in text:
            return "[[ ## reasoning ## ]]\nso\n\n[[ ## answer ## ]]\ndone\n\n[[ ## completed ## ]]"
        names = re.findall(r"\(\d+\) (\w+), whose description is", text)
        results = re.findall(r"observation_\d+ ## \]\]\\n(.*?)\\n\\n", text)
        reply = self.script.reply([name for name in names if name != "finish"], results)
        name, arguments = (reply.name, reply.arguments) if isinstance(reply, Call) else ("finish", {})
        return (
            f"[[ ## next_thought ## ]]\nso\n\n[[ ## next_tool_name ## ]]\n{name}\n\n"
            f"[[ ## next_tool_args ## ]]\n{json.dumps(arguments)}\n\n[[ ## completed ## ]]"
        )

    def __call__(self, prompt: Any = None, messages: Any = None, **_: Any) -> Any:
        return [self.answer(messages)]

    async def acall(self, prompt: Any = None, messages: Any = None, **_: Any) -> Any:
        answer, listener = self.answer(messages), dspy.settings.send_stream
        if listener is not None:
            for part in re.findall(r"\s*\S+", answer):
                await listener.send(chunk(part))
        return [answer]


def chunk(part: str) -> EngineChunk:
    """A part of an answer, as models of DSPy's own send it to listeners of the predictor that asked."""
    delta = SimpleNamespace(delta=SimpleNamespace(content=part))
    return EngineChunk(predict_id=id(dspy.settings.caller_predict), choices=[delta])


class DSPy(Driver):
    def __init__(self, board: Board) -> None:
        self.selector = ToolSelector(board)

    def module(self, tools: Sequence[Any]) -> PegboardReAct:
        return PegboardReAct("question -> answer", list(tools), selector=self.selector)

    async def run(self, ask: str, script: Script, functions: Functions, *, stream: bool = False) -> str:
        module = self.module(self.tools(functions))
        with dspy.context(lm=Scripted(script)):
            if not stream:
                return str((await module.acall(question=ask)).answer)
            listeners = [
                dspy.streaming.StreamListener("next_tool_name", allow_reuse=True),
                dspy.streaming.StreamListener("answer"),
            ]
            running = dspy.streamify(module, stream_listeners=listeners, is_async_program=True)
            said = ""
            async for part in running(question=ask):
                if isinstance(part, dspy.Prediction):
                    said = part.answer
                elif isinstance(part, dspy.streaming.StreamResponse):
                    script.streamed.append(part.chunk)
            return said

    async def run_with_handoff(self, ask: str, script: Script, functions: Functions) -> str:
        """A module that has a second one as a tool."""
        shown: list[list[str]] = []
        rest = Script(script.steps[1:])
        second = self.module(self.tools(functions))

        async def delegate_to_expert() -> str:
            """Delegate work to the expert"""
            with dspy.context(lm=Scripted(rest)):
                return str((await second.acall(question=ask)).answer)

        own = Script([lambda names: Call(script.steps[0](names).name, {}), "done"], shown)
        with dspy.context(lm=Scripted(own)):
            first = self.module([*self.tools(functions), dspy.Tool(delegate_to_expert)])
            said = str((await first.acall(question=ask)).answer)
        script.shown[:] = [shown[0], *rest.shown]
        return said

    def tools(self, functions: Functions) -> list[Any]:
        return [dspy.Tool(each) for each in functions]

    def messages(self, ask: str) -> list[Any]:
        return [{"role": "user", "content": ask}, {"role": "assistant", "content": "It is there."}]

    async def select(self, ask: str, tools: Sequence[Any]) -> object:
        return await self.selector.reading(once=True).select(tools, ask)


main(DSPy)
