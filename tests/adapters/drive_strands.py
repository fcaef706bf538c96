"""strands: `PegboardToolPlugin`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel
from scenario import ASKS, CALLS, Call, Driver, Functions, Script, functions, halves, main
from strands import Agent, tool
from strands.models import Model
from strands.multiagent import GraphBuilder, Swarm

from pegboard import Board
from pegboard.adapters.selection import ToolSelector
from pegboard.adapters.strands import PegboardToolPlugin, specified


class Scripted(Model):
    def __init__(self, script: Script) -> None:
        self.script = script

    def update_config(self, **_: Any) -> None: ...

    def get_config(self) -> Any:
        return {}

    async def structured_output(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError
        yield

    async def stream(self, messages: Any, tool_specs: Any = None, system_prompt: Any = None, **_: Any) -> Any:
        blocks = [block["toolResult"] for message in messages for block in message["content"] if "toolResult" in block]
        results = [str(block["content"][0].get("text")) for block in blocks]
        reply = self.script.reply([each["name"] for each in tool_specs or ()], results)
        yield {"messageStart": {"role": "assistant"}}
        if isinstance(reply, Call):
            use = {"name": reply.name, "toolUseId": f"c{len(self.script.shown)}"}
            yield {"contentBlockStart": {"start": {"toolUse": use}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": reply.text}}}}
        else:
            yield {"contentBlockStart": {"start": {}}}
            for half in halves(reply):
                yield {"contentBlockDelta": {"delta": {"text": half}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if isinstance(reply, Call) else "end_turn"}}


class Strands(Driver):
    def __init__(self, board: Board) -> None:
        self.selector = ToolSelector(board)
        self.specifications: Any = None

    def agent(self, script: Script, functions: Functions, **more: Any) -> Agent:
        plugins = [PegboardToolPlugin(self.selector)]
        return Agent(
            model=Scripted(script), tools=self.tools(functions), plugins=plugins, callback_handler=None, **more
        )

    async def run(self, ask: str, script: Script, functions: Functions, *, stream: bool = False) -> str:
        agent = self.agent(script, functions)
        if not stream:
            return str(await agent.invoke_async(ask)).strip()
        result: Any = None
        async for event in agent.stream_async(ask):
            result = event.get("result", result)
            script.streamed.append(event.get("data", ""))
        return str(result).strip()

    async def run_with_handoff(self, ask: str, script: Script, functions: Functions) -> str:
        def hand_off(tools: Sequence[str]) -> Any:
            reply = script.steps[0](tools)
            arguments = {"agent_name": "expert", "message": ask}
            return Call(reply.name, arguments) if isinstance(reply, Call) else reply

        shared = Script([hand_off, "handed over", *script.steps[1:]], script.shown, script.results)
        first = self.agent(shared, functions, name="office")
        second = self.agent(shared, functions, name="expert")
        result = await Swarm([first, second]).invoke_async(ask)
        script.shown[:] = [shown for number, shown in enumerate(script.shown) if number != 1]
        return str(result.results["expert"].result).strip()

    def tools(self, functions: Functions) -> list[Any]:
        return [tool(each) for each in functions]

    def messages(self, ask: str) -> list[Any]:
        return [
            {"role": "user", "content": [{"text": ask}]},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c", "name": "get_invoice", "input": {}}}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "c", "content": [{"text": "ok"}]}}]},
            {"role": "assistant", "content": [{"text": "It is there."}]},
        ]

    async def select(self, ask: str, tools: Sequence[Any]) -> object:
        if self.specifications is None:  # the framework makes them in any case
            self.specifications = [each.tool_spec for each in tools]
        return await self.selector.reading(specified).select(
            self.specifications, [{"role": "user", "content": [{"text": ask}]}]
        )


class Payable(BaseModel):
    """What is owed."""

    total: float


async def structured_output(driver: Strands) -> dict[str, Any]:
    """The output is forced after an answer, with words that name other tools; or the model gives it at once."""
    call = Call("Payable", {"total": 3})
    scripts = {"forced": Script(["done", call]), "at_once": Script([call])}
    totals = []
    for script in scripts.values():
        agent = driver.agent(script, functions(), structured_output_prompt=f"Now report. {ASKS[3][1]}.")
        result = await agent.invoke_async(ASKS[0][1], structured_output_model=Payable)
        totals.append(result.structured_output.total)
    return {"totals": totals, **{name: script.shown for name, script in scripts.items()}}


class Meeting(Scripted):
    """A model that answers its first request when another one has got its first, too."""

    def __init__(self, script: Script, barrier: asyncio.Barrier) -> None:
        super().__init__(script)
        self.barrier = barrier

    async def stream(self, *given: Any, **more: Any) -> Any:
        if not self.script.shown:
            async with asyncio.timeout(30):
                await self.barrier.wait()
        async for event in super().stream(*given, **more):
            yield event


async def graph(driver: Strands) -> dict[str, Any]:
    """Two agents of a graph that are at work at the same time, each with tools of its own."""
    CALLS.clear()
    barrier, builder = asyncio.Barrier(2), GraphBuilder()
    scripts = {"get": Script([Call("get_invoice"), "done"]), "list": Script([Call("list_invoice"), "done"])}
    plugin = PegboardToolPlugin(driver.selector)
    for verb, script in scripts.items():
        agent = Agent(
            model=Meeting(script, barrier),
            tools=driver.tools(functions((verb,))),
            plugins=[plugin],
            callback_handler=None,
            name=verb,
        )
        builder.add_node(agent, verb)
        builder.set_entry_point(verb)
    await builder.build().invoke_async(ASKS[0][1])
    return {"ran": sorted(CALLS), "results": [script.results for script in scripts.values()]}


main(Strands, structured_output=structured_output, graph=graph)
