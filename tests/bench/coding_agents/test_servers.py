"""The MCP servers of the coding agents: started by each agent, or running for all of its conversations."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from pegboard_bench.coding_agents.agents import AGENTS
from pegboard_bench.coding_agents.atlassian import MORE, SERVER, TOOLS, Running, servers
from pegboard_bench.coding_agents.processes import running

URL = "http://127.0.0.1:7001/mcp"


@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_is_told_where_a_server_runs_and_how_to_start_one(name: str, tmp_path: Path) -> None:
    agent, started = AGENTS[name], servers(Path("/installed"), "http://127.0.0.1:1", 60)

    agent.setup(tmp_path / "running", "http://127.0.0.1:2", {SERVER: Running(URL)})
    agent.setup(tmp_path / "started", "http://127.0.0.1:2", started)

    ran, start = (_written(tmp_path / each) for each in ("running", "started"))
    assert URL in ran
    assert started[SERVER].command not in ran
    assert started[SERVER].command in start
    assert "7001" not in start


async def test_a_server_that_runs_has_the_same_tools_for_every_agent(tmp_path: Path) -> None:
    given = {MORE: servers(tmp_path, "http://127.0.0.1:1", len(TOOLS) + 7)[MORE]}
    with running(given, tmp_path) as found:
        for _ in range(2):
            async with Client(streamable_http_client(found[MORE].url)) as client:
                assert len((await client.list_tools()).tools) == 7


def _written(home: Path) -> str:
    return "\n".join(path.read_text("utf-8") for path in home.rglob("*") if path.is_file())
