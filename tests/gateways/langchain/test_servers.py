"""Tools that are on MCP servers, and behind another Pegboard: no adapter in between."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from gateway_processes import GatewayProcess
from pegboard.errors import ConfigError
from pegboard.gateways.langchain.scripted_model import ScriptedModel, calls
from upstream_specs import SCRIPTED

CONFIG = {"mcpServers": {"scripted": {"command": sys.executable, "args": [SCRIPTED]}}}
ASK = {"messages": [HumanMessage("echo a text back, return an image, answer with isError")]}
WANTED = (("echo", {"text": "hello"}), ("picture", {}), ("fails", {}))


@pytest.mark.requirement("M7", "M8")
@pytest.mark.parametrize("way", ["sync", "async"])
def test_tools_of_mcp_servers_are_shown_and_called_with_all_that_they_answer(town_agents: Any, way: str) -> None:
    model = ScriptedModel(steps=[calls(*WANTED), "done"])
    agent = town_agents.agent(model, tools=[], config=CONFIG, k=20, start_wait=60)

    out = agent.invoke(ASK) if way == "sync" else asyncio.run(agent.ainvoke(ASK))

    echo, picture, fails = (each for each in out["messages"] if each.type == "tool")
    assert (echo.status, echo.text) == ("success", "hello")
    assert {block["type"] for block in picture.content} == {"image", "text"}
    assert picture.artifact.structured is not None
    assert (fails.status, bool(fails.text)) == ("error", True)


@pytest.mark.requirement("M11")
def test_a_registered_tool_and_a_servers_tool_of_one_name_are_two(town_agents: Any) -> None:
    def echo(text: str) -> str:
        """Echo a text back, from the agent itself"""
        return f"mine: {text}"

    said = {"text": "hello"}
    model = ScriptedModel(steps=[calls(("agent__echo", said), ("scripted__echo", said)), "done"])
    agent = town_agents.agent(model, tools=[echo], config=CONFIG, k=20, start_wait=60)

    out = agent.invoke(ASK)

    assert [each.text for each in out["messages"] if each.type == "tool"] == ["mine: hello", "hello"]


def test_another_pegboard_is_reached_by_its_address(town_agents: Any, tmp_path: Path) -> None:
    gateway = GatewayProcess(tmp_path / "gateway")
    gateway.start()
    try:
        model = ScriptedModel(steps=[calls(("echo", {"text": "hello"})), "done"])
        out = town_agents.agent(model, tools=[], url=gateway.url, k=20, start_wait=60).invoke(ASK)
    finally:
        gateway.end()

    assert [each.text for each in out["messages"] if each.type == "tool"] == ["hello"]


def test_a_server_named_as_the_agents_own_tools_hides_none_of_them_but_is_refused(town_agents: Any) -> None:
    agent = town_agents.agent(ScriptedModel(steps=["done"]), servers={"agent": {"command": "no-such-program"}})

    with pytest.raises(ConfigError, match=r"'agent'.* Give the server another name"):
        agent.invoke(ASK)
