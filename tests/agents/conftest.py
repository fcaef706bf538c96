"""Real coding agents, and a provider of ours: `python scripts/install_agents.py` installs them (CI does)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pegboard_bench.coding_agents.agents import AGENTS
from pegboard_bench.coding_agents.processes import Provider, provider
from pegboard_bench.coding_agents.sessions import Place

ROOT = Path(__file__).parents[2]
INSTALLED = ROOT / ".demo" / "agents"
PROVIDER = ROOT / "tests" / "servers" / "coding_provider.py"


@pytest.fixture(scope="session")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    if sys.platform != "linux":
        pytest.skip("Linux only, as is CI")
    if not (INSTALLED / "mcp_atlassian").is_dir():
        message = "install the agents: python scripts/install_agents.py"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    with provider(PROVIDER, tmp_path_factory.mktemp("provider")) as found:
        yield found


@pytest.fixture
def place(request: pytest.FixtureRequest, behind: Provider, tmp_path: Path) -> Place:
    """An agent by its name, and how many MCP tools it has."""
    name, tools = request.param
    return Place(
        agent=AGENTS[name], tools=tools, installed=INSTALLED.resolve(), folder=tmp_path / "agent", provider=behind
    )
