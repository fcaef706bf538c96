"""Servers that announce new tools, and servers that do not run yet, behind the gateway."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from journals import Journal
from pegboard.model import ToolId
from pegboard.protocols import Listing
from pegboard.stores import MemoryDefinitions, SqliteDefinitions
from pegboard.testing import FakeEncoder
from pegboard.upstreams import Fleet
from pegboard.upstreams.subscriptions import RELIST_PAUSE
from processes import until
from upstream_specs import scripted

OpenClient = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture(params=["2025-11-25", "2026-07-28"])
def protocol(request: pytest.FixtureRequest) -> str:
    """What a server is remembered to speak: either it is greeted so, or asked."""
    return str(request.param)


def remembered(protocol: str) -> tuple[str, Listing]:
    return scripted().expanded(os.environ).identity(), Listing(introduction={}, pages=(), protocol=protocol)


@pytest.mark.requirement("M18")
async def test_of_a_server_that_announces_a_new_tool_only_that_tool_is_embedded(
    client_of: OpenClient, encoder: FakeEncoder, tmp_path: Path, protocol: str
) -> None:
    store = SqliteDefinitions(tmp_path / "definitions.sqlite")
    await store.put(*remembered(protocol))
    store.close()
    async with client_of() as client:
        while "echo" not in encoder.encoded:  # a query is not embedded before the tools are
            await client.call_tool("search_tools", {"query": "echo"})
        before = list(encoder.encoded)
        await client.call_tool("grow", {"name": "wombat", "times": 1})
        await until(lambda: len(encoder.encoded) > len(before))
        found = await client.call_tool("search_tools", {"query": "echo"})
        described = await client.call_tool("describe_tools", {"names": ["wombat"]})
    new = encoder.encoded[len(before) :]
    assert new
    assert all("wombat" in text for text in new)
    assert found.content
    assert [tool["name"] for tool in json.loads(described.content[0].text)["tools"]] == ["wombat"]  # type: ignore[union-attr]


@pytest.mark.requirement("M18")
async def test_a_storm_of_announcements_is_few_listings(fleet_of: Callable[..., Fleet], protocol: str) -> None:
    definitions = MemoryDefinitions()
    await definitions.put(*remembered(protocol))
    changes: list[int] = []

    async def changed() -> None:
        changes.append(len(fleet.catalog()))

    fleet = fleet_of(scripted(), definitions=definitions, on_change=changed)
    async with fleet:
        await until(lambda: fleet.status()[0].state == "ready")
        assert fleet.status()[0].protocol == protocol
        before, began = int(await answer(fleet, "listings")), time.monotonic()
        for number in range(20):
            await answer(fleet, "grow", name=f"animal{number}", times=50)
        await until(lambda: any(tool.name == "animal19" for tool in fleet.catalog().tools))
        after = int(await answer(fleet, "listings"))
    assert after - before <= 3 + (time.monotonic() - began) / RELIST_PAUSE, "1,000 announcements"
    assert len(changes) <= 3 + (after - before), "what was remembered, two listings at the start, and the new ones"


async def answer(fleet: Fleet, tool: str, /, **arguments: Any) -> str:
    result = await fleet.call(ToolId("scripted", tool), arguments)
    return str(result["content"][0]["text"])


@pytest.mark.requirement("M19")
async def test_nothing_but_a_call_starts_a_lazy_server(client_of: OpenClient, tmp_path: Path) -> None:
    journal = Journal("plain", tmp_path)
    async with client_of(journal.spec(), lazy=True) as client:
        await client.list_tools()
    assert len(journal.starts) == 1, "it was not known yet"
    async with client_of(journal.spec(), lazy=True) as client:
        await client.list_tools()
        found = await client.call_tool("search_tools", {"query": "pid"})
        await client.call_tool("search_tools", {"query": "something else", "server": "plain"})
        await client.call_tool("list_tool_categories", {})
        await client.call_tool("describe_tools", {"names": ["pid"]})
        await asyncio.gather(*(client.list_tools() for _ in range(3)))
        assert len(journal.starts) == 1
        result = await client.call_tool("invoke_tool", {"name": "pid"})
        assert result.content[0].text == str(journal.starts[1])  # type: ignore[union-attr]
    answered = json.loads(found.content[0].text)  # type: ignore[union-attr]
    assert [tool["name"] for tool in answered["tools"]] == ["pid"]
    assert "servers_not_ready" not in answered


async def test_a_small_board_of_lazy_servers_is_listed_whole_from_the_start(
    client_of: OpenClient, tmp_path: Path
) -> None:
    journal = Journal("plain", tmp_path)
    async with client_of(journal.spec(), lazy=True, exposure="auto") as client:
        first = await client.list_tools()
    async with client_of(journal.spec(), lazy=True, exposure="auto") as client:
        second = await client.list_tools()
    assert [tool.name for tool in second.tools] == [tool.name for tool in first.tools] == ["pid"]
    assert len(journal.starts) == 1
