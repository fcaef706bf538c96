"""What calls through the gateway teach its routing, before real servers that fail."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any

import pytest
from mcp import Client, MCPError

from pegboard.settings.economics import BreakerSettings, EconomicsSettings
from upstream_specs import scripted

OpenClient = Callable[..., AbstractAsyncContextManager[Client]]

TWO = (scripted("one"), scripted("two"))


async def found(client: Client, **more: Any) -> dict[str, str]:
    """The names that a search finds for a request, by server."""
    result = await client.call_tool("search_tools", {"query": "answer with a protocol error", **more})
    tools = json.loads(result.content[0].text)["tools"]  # type: ignore[union-attr]
    return {tool["server"]: tool["name"] for tool in tools if "raises" in tool["name"]}


async def call(client: Client, name: str, times: int) -> None:
    """Each is answered with a protocol error, which is the server's fault."""
    for _ in range(times):
        with suppress(MCPError):
            await client.call_tool("invoke_tool", {"name": name, "arguments": {}})


@pytest.mark.requirement("001.alg2", "001.eq8")
async def test_under_ehrr_a_server_that_fails_loses_the_traffic_within_ten_calls(client_of: OpenClient) -> None:
    options = {"profile": "ehrr", "economics": EconomicsSettings(servers=1), "breakers": BreakerSettings(failures=0)}
    async with client_of(*TWO, **options) as client:
        [(first, name)] = (await found(client)).items()
        calls = 0
        while set(await found(client)) == {first}:
            await call(client, name, 1)
            calls += 1
            assert calls <= 10


@pytest.mark.requirement("001.breakers")
async def test_the_tools_of_a_server_that_rests_are_found_only_where_that_server_is_asked_for(
    client_of: OpenClient,
) -> None:
    async with client_of(*TWO, breakers=BreakerSettings(failures=3, rest=600)) as client:
        names = await found(client)
        assert names.keys() == {"one", "two"}
        await call(client, names["one"], 3)

        assert (await found(client)).keys() == {"two"}
        assert (await found(client, server="one")).keys() == {"one"}
        await client.call_tool("invoke_tool", {"name": names["one"].replace("raises", "fails"), "arguments": {}})
        assert (await found(client)).keys() == {"one", "two"}, "it answered, if with an error of its tool"
