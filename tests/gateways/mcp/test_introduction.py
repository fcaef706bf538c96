"""What a client is told at the beginning: what the servers say, and how the board is used."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from pegboard.catalog import BpeCounter
from pegboard.gateways.mcp.gateway.meta_definitions import META_TOOLS, OF_MANY, introduction
from pegboard.model import Server, ServerName
from pegboard.settings import Exposure
from pegboard.settings.server_spec import ServerSpec

OpenClient = Callable[..., AbstractAsyncContextManager[Client]]

LISTED = str(Path(__file__).parents[2] / "servers" / "listed.py")
TOOL = {"name": "pay", "description": "Pay", "inputSchema": {"type": "object"}}
COUNTER = BpeCounter()
EXPOSURES: list[Exposure] = ["eager", "native", "static", "dynamic", "route"]

pytestmark = pytest.mark.requirement("B6")


def server(name: str, instructions: str) -> Server:
    return Server(name=ServerName(name), instructions=instructions)


@pytest.fixture
def says(tmp_path: Path) -> Callable[..., ServerSpec]:
    """A server with these instructions, and a tool."""

    def make(name: str, instructions: str) -> ServerSpec:
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps({"title": name, "instructions": instructions, "tools": [TOOL]}))
        return ServerSpec(name=name, command=sys.executable, args=(LISTED, str(file)))

    return make


async def test_a_single_servers_own_instructions_reach_the_client_whole(
    client_of: OpenClient, says: Callable[..., ServerSpec]
) -> None:
    long = "Ask before you pay. " * 500
    async with client_of(says("bank", long)) as client:
        told = client.instructions or ""
        listed = {tool.name for tool in (await client.list_tools()).tools}
    assert told.endswith(long.strip())
    assert "search_tools" in told
    assert {name for name in META_TOOLS if name in told} <= listed


async def test_each_servers_instructions_stand_under_its_name(
    client_of: OpenClient, says: Callable[..., ServerSpec]
) -> None:
    async with client_of(says("bank", "Ask before you pay."), says("quiet", ""), says("zoo", "Feed them first.")) as it:
        told = it.instructions or ""
    assert told.endswith("# bank\nAsk before you pay.\n\n# zoo\nFeed them first.")
    assert "quiet" not in told


async def test_a_board_that_is_listed_whole_is_introduced_without_meta_tools(
    client_of: OpenClient, says: Callable[..., ServerSpec]
) -> None:
    async with client_of(says("bank", "Ask before you pay."), exposure="auto") as client:
        assert client.instructions == "Ask before you pay."
    async with client_of(says("quiet", ""), exposure="auto") as client:
        assert client.instructions is None


async def test_who_has_no_right_to_a_servers_tools_is_not_told_what_it_says(
    client_of: OpenClient, says: Callable[..., ServerSpec]
) -> None:
    rules: Any = [{"tools": "bank/*", "scope": "money"}]
    async with client_of(says("bank", "The vault is open."), says("zoo", "Feed them."), rules=rules) as client:
        assert "vault" not in (client.instructions or "")


@pytest.mark.parametrize("exposure", EXPOSURES)
@pytest.mark.parametrize("servers", [1, 3])
def test_no_meta_tool_is_named_that_is_not_listed(exposure: Exposure, servers: int) -> None:
    told = introduction([server(f"s{at}", "Be kind.") for at in range(servers)], exposure, 500, COUNTER)

    expected = {"route": {"route_tools", "execute_tool"}, "eager": set(), "native": set()}
    assert {name for name in META_TOOLS if name in told} == expected.get(exposure, {"search_tools", "invoke_tool"})
    assert told.count("Be kind.") == servers


@pytest.mark.parametrize("budget", [0, 20, 100, 500])
def test_instructions_of_several_servers_keep_to_the_budget_and_the_short_ones_are_whole(budget: int) -> None:
    said = [
        server("long", "All about it. " * 1_000),
        server("short", "Be kind."),
        server("longer", "On and on. " * 5_000),
    ]
    told = introduction(said, "static", budget, COUNTER)

    line, *parts = told.split("\n\n")
    assert line.startswith(OF_MANY)
    assert sum(COUNTER.count(parts)) <= budget
    assert ("# short\nBe kind." in parts) == (budget > 0)
    assert len(parts) == (0 if budget == 0 else 1 if budget == 20 else 3)
    assert all(part.endswith("…") for part in parts if not part.startswith("# short"))
