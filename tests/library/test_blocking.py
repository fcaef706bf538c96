"""No call that blocks is made on an event loop, the board's own included: `langgraph dev` forbids them all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway_processes import GatewayProcess
from upstream_specs import SCRIPTED

pytestmark = [pytest.mark.timeout(600), pytest.mark.requirement("C2")]

HEAD = """
import asyncio, sys
from blockbuster import BlockBuster
from langchain.agents import create_agent
from pegboard.gateways.langchain import ToolAttentionMiddleware
from pegboard.gateways.langchain.scripted_model import ScriptedModel, calls
from pegboard import Board, Call

def tide(harbour: str) -> str:
    "When the tide comes in at a harbour"
    return f"{harbour}: 16:20"

OPTIONS = dict(k=50, start_wait=60, gate="reachable", rules=[{"tools": "none", "requires": ["milestone_reached:x"]}])
BlockBuster().activate()
"""
LIBRARY = """
board = Board([tide], **SERVER, **OPTIONS)

async def main():
    async with board:
        decision = await board.route("when is high tide, and what is this text echoed?", session="ada")
        for name, arguments in (("tide", {"harbour": "Bergen"}), ("echo", {"text": "hello"})):
            print((await board.execute(Call(name=name, arguments=arguments), decision)).text, flush=True)

asyncio.run(main())
"""
MIDDLEWARE = """
middleware = ToolAttentionMiddleware(**SERVER, **OPTIONS)
steps = [calls(("tide", {"harbour": "Bergen"}), ("echo", {"text": "hello"})), "done"]
agent = create_agent(ScriptedModel(steps=steps), tools=[tide], middleware=[middleware])

async def main():
    asked = {"messages": [{"role": "user", "content": "when is high tide, and what is this text echoed?"}]}
    out = await agent.ainvoke(asked)
    print(*(each.text for each in out["messages"] if each.type == "tool"), sep="\\n", flush=True)
    await asyncio.to_thread(middleware.close)

asyncio.run(main())
"""


def run(program: str, home: Path, server: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "HOME": str(home)}
    source = f"{HEAD}SERVER = {server}\n{program}"
    return subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, env=env, timeout=500)


@pytest.mark.parametrize("program", [LIBRARY, MIDDLEWARE], ids=["library", "middleware"])
def test_servers_start_and_tools_are_called_without_a_blocking_call(tmp_path: Path, program: str) -> None:
    server = {"config": {"mcpServers": {"scripted": {"command": sys.executable, "args": [SCRIPTED], "cwd": "."}}}}

    done = run(program, tmp_path, repr(server))

    assert done.stdout.splitlines() == ["Bergen: 16:20", "hello"], done.stderr


@pytest.mark.parametrize("program", [LIBRARY, MIDDLEWARE], ids=["library", "middleware"])
def test_another_pegboard_is_reached_without_a_blocking_call(tmp_path: Path, program: str) -> None:
    gateway = GatewayProcess(tmp_path / "gateway")
    gateway.start()
    try:
        done = run(program, tmp_path, repr({"url": gateway.url}))
    finally:
        gateway.end()

    assert done.stdout.splitlines() == ["Bergen: 16:20", "hello"], done.stderr
