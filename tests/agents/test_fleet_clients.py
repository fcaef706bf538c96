"""Real coding agents with Pegboard in place of seven real servers: each searches, and calls what it found.

`make bench-fleet` does it over the whole fleet, and compares with the agents without Pegboard.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pegboard.settings import load_settings
from pegboard_bench.coding_agents.conversations import Kept
from pegboard_bench.coding_agents.processes import Provider
from pegboard_bench.fleet.agent_clients import Agents
from pegboard_bench.fleet.before_fleet import Doors, doors
from pegboard_bench.fleet.needs import TRANSPORTS, Way, needs
from played_agents import PLAYED

DEMO = Path(__file__).parents[2] / ".demo"
CONFIG = DEMO / "mcp.json"

pytestmark = [pytest.mark.npm, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    if not CONFIG.exists():
        message = "install the servers: python scripts/install_servers.py"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    with doors(load_settings([CONFIG]).enabled_servers, CONFIG, tmp_path_factory.mktemp("doors")) as found:
        yield found


@pytest.fixture
def agents(fleet: Doors, behind: Provider) -> Agents:
    wanted = needs((DEMO / "repository").resolve())
    return Agents(installed=(DEMO / "agents").resolve(), provider=behind, doors=fleet, needs=wanted, kept=Kept())


@pytest.mark.requirement("022.clients")
@pytest.mark.parametrize("way", TRANSPORTS)
@pytest.mark.parametrize("name", PLAYED)
def test_an_agent_searches_calls_what_it_found_and_is_given_the_result(
    agents: Agents, name: str, way: Way, tmp_path: Path
) -> None:
    found = agents.converse(name, way, tmp_path)

    assert found.trouble == ""
    assert found.done == found.calls == len(agents.needs)
