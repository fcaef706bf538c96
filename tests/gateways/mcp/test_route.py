"""ROUTE and EXECUTE-TOOL (EHRR, algorithm 1) as a client's model calls them, before real servers."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp import Client

from doors import Raw
from pegboard.events import CallFinished, CallRejected, RouteDecided, ToolsOffered
from pegboard.gateways.mcp.gateway.host import Host
from pegboard.settings.economics import BreakerSettings, EconomicsSettings
from pegboard.settings.server_spec import ServerSpec
from pegboard.settings.storage import SpendSettings
from pegboard.stores import MemoryEvents
from processes import until
from upstream_specs import scripted

OpenClient = Callable[..., AbstractAsyncContextManager[Client]]
OpenDoor = Callable[..., AbstractAsyncContextManager[tuple[str, Host]]]

NUMBERS = {"text": "add two numbers"}
ROUTING = ["route_tools", "execute_tool", "report_outcome"]


def said(result: types.CallToolResult, at: int = 0) -> dict[str, Any]:
    return dict(json.loads(result.content[at].text))  # type: ignore[union-attr]


async def routed(client: Client, subtask: dict[str, str] | None = None, **limits: float) -> dict[str, Any]:
    result = await client.call_tool("route_tools", {"subtask": subtask or NUMBERS, **limits})
    assert not result.is_error, result
    return said(result)


async def execute(client: Client, name: str, **arguments: Any) -> types.CallToolResult:
    return await client.call_tool("execute_tool", {"name": name, "arguments": arguments})


@pytest.mark.requirement("001.alg1")
async def test_a_client_that_routes_is_listed_what_that_takes_and_what_is_always_available(
    client_of: OpenClient,
) -> None:
    async with client_of(exposure="route", always_available=("scripted/echo",)) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == [*ROUTING, "echo"]


@pytest.mark.requirement("001.alg1", "001.alg2")
@pytest.mark.parametrize("profile", ["hybrid", "ehrr"])
async def test_a_route_says_what_each_tool_costs_and_takes_and_how_likely_it_is_to_succeed(
    client_of: OpenClient, profile: str, events: MemoryEvents
) -> None:
    prices = {"scripted/add": 0.01}
    async with client_of(exposure="route", profile=profile, spend=SpendSettings(prices=prices)) as client:
        tools = (await routed(client, NUMBERS | {"domain": "maths", "operation": "sum"}))["tools"]

        assert len(tools) == 3
        [offered], decided = events.of(ToolsOffered), events.of(RouteDecided)[-1]
        assert (offered.way, offered.offered, offered.decision) == ("route", 3, decided.turn_id)  # type: ignore[attr-defined]
        best = tools[0]
        assert best.pop("score") > tools[1]["score"] > tools[2]["score"]
        assert best == {
            "name": "add",
            "server": "scripted",
            "description": "Add two numbers",
            "inputSchema": {
                "type": "object",
                "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
                "required": ["a", "b"],
            },
            "price_usd": 0.01,
            "price_from": "config",
            "expected_seconds": 1.0,
            "success": 0.855,
        }
        assert tools[1]["price_from"] == "free"
        [decided] = events.of(RouteDecided)
        assert decided.profile == "ehrr"  # type: ignore[attr-defined]

        result = await execute(client, "add", a=1, b=2)
        assert result.structured_content == {"sum": 3}
        assert len(result.content) == 1
        learned = (await routed(client))["tools"][0]
        assert learned["success"] > 0.855
        assert learned["expected_seconds"] != 1.0


@pytest.mark.requirement("001.alg1", "001.limits")
async def test_where_nothing_is_left_a_route_says_why_and_what_to_try_next(client_of: OpenClient) -> None:
    spend = SpendSettings(prices={"scripted/*": 0.01, "dear/*": 0.5})
    asks = EconomicsSettings(asks={"scripted": 0.012})
    async with client_of(scripted(), exposure="route", spend=spend, economics=asks) as client:
        poor = await routed(client, max_price=0.001)
        assert poor == {
            "tools": [],
            "why": ["Server scripted does not accept calls at $0.001: it asks $0.012."],
            "try_next": [
                "Allow a higher max_price: $0.012 or more.",
                "Describe more exactly what is needed, or ask for another operation.",
            ],
        }
        assert len((await routed(client, max_price=0.012))["tools"]) == 3

        hasty = await routed(client, deadline=0.5)
        assert "13 tools are too slow for a deadline of 0.5 s" in hasty["why"][0]
        assert hasty["try_next"][0] == "Allow a deadline of 1 s or more."
        assert len((await routed(client, deadline=1.0))["tools"]) == 3


@pytest.mark.requirement("001.alg2")
async def test_tools_that_cost_more_than_is_offered_are_named_with_the_cheapest(client_of: OpenClient) -> None:
    spend = SpendSettings(prices={"scripted/echo": 0.3, "scripted/*": 0.5})
    asks = EconomicsSettings(asks={"scripted": 0.0})
    async with client_of(exposure="route", spend=spend, economics=asks) as client:
        [why] = (await routed(client))["why"]
    assert why.startswith("13 tools are too expensive: the cheapest, scripted/echo, costs $0.3 a call, but $0.0")


@pytest.mark.requirement("001.eq2")
async def test_the_time_to_connect_counts_until_a_connection_is_open(client_of: OpenClient) -> None:
    async with client_of(exposure="route") as client:
        await routed(client)  # from now on the tools are known without the server
    async with client_of(exposure="route", lazy=True) as client:
        before = (await routed(client))["tools"][0]["expected_seconds"]
        await execute(client, "echo", text="now there is a connection")
        assert before == 2.0
        assert (await routed(client))["tools"][0]["expected_seconds"] == 1.0


@pytest.mark.requirement("001.breakers")
async def test_a_route_leaves_out_a_server_that_rests_and_says_so(client_of: OpenClient) -> None:
    breakers = BreakerSettings(failures=1, rest=600)
    async with client_of(scripted("one"), scripted("two"), exposure="route", breakers=breakers) as client:
        await execute(client, "one__raises")
        answer = await routed(client)
        assert {tool["server"] for tool in answer["tools"]} == {"two"}
        assert answer["why"] == ["Server one failed repeatedly and is not used for a while."]


@pytest.mark.requirement("001.alg1")
async def test_a_failure_comes_back_as_it_is_with_the_other_tools_of_the_last_route(client_of: OpenClient) -> None:
    async with client_of(exposure="route") as client:
        tools = [tool["name"] for tool in (await routed(client, {"text": "answer with iserror"}))["tools"]]
        assert "fails" in tools
        others = [name for name in tools if name != "fails"]

        failed = await execute(client, "fails")
        assert failed.is_error
        assert failed.content[0].text == "it is broken"  # type: ignore[union-attr]
        assert said(failed, 1)["try_next"]["tools"] == others

        raised = await execute(client, "raises")
        assert raised.is_error
        assert said(raised) == {
            "error": "protocol_error",
            "code": -32050,
            "message": "custom protocol error",
            "data": {"why": "test"},
        }
        assert "fails" in said(raised, 1)["try_next"]["tools"]

        died = await execute(client, "die")
        assert said(died)["error"] == "upstream_error"
        assert said(died, 1)["try_next"]["tools"] == [name for name in tools if name != "die"]


@pytest.mark.requirement("001.verdict")
async def test_an_agents_verdict_takes_the_place_of_the_success_that_its_call_counted_as(open_door: OpenDoor) -> None:
    async with open_door(exposure="route") as (url, _), httpx2.AsyncClient(trust_env=False, timeout=60) as http:
        client = await Raw(http, url).begin()

        async def chance() -> float:
            offered = (await client.ask("route_tools", subtask=NUMBERS))["tools"]
            return float(next(tool["success"] for tool in offered if tool["name"] == "add"))

        async def report(*, useful: bool) -> bool:
            return bool((await client.ask("report_outcome", name="add", useful=useful))["counted"])

        add = {"name": "add", "arguments": {"a": 1, "b": 2}}
        before = await chance()
        assert not await report(useful=False), "nothing was called yet"
        await client.call("execute_tool", **add)
        better = await chance()
        assert better > before
        assert await report(useful=False)
        worse = await chance()
        assert worse < before
        assert not await report(useful=False), "once a call"

        await client.call("execute_tool", **add)
        good = await chance()
        assert await report(useful=True)
        assert await chance() == good, "it counted as a success already"

        await client.call("execute_tool", **add)
        stranger = await Raw(http, url).begin()
        assert not (await stranger.ask("report_outcome", name="add", useful=False))["counted"]
        nameless = Raw(http, url, modern=True)
        await nameless.call("execute_tool", **add)
        assert "why" in await nameless.ask("report_outcome", name="add", useful=False)


@pytest.mark.requirement("001.alg1")
async def test_wrong_calls_are_refused_with_what_was_wrong_before_any_server_sees_them(
    client_of: OpenClient, events: MemoryEvents
) -> None:
    async with client_of(exposure="route", rules=({"tools": "scripted/echo", "scope": "speech"},)) as client:
        wrong = await execute(client, "add", a="one")
        assert said(wrong)["error"] == "arguments_invalid"
        unknown = await execute(client, "ad")
        assert said(unknown)["available"] == ["add"]
        assert said(unknown)["remedy"] == "Find tools with route_tools."
        assert said(await execute(client, "echo", text="x"))["error"] == "tool_not_available"
        assert said(await execute(client, "route_tools"))["remedy"] == "Call Pegboard's own tools directly."
        assert said(wrong, 1)["try_next"]["tools"] == []
        assert "echo" not in [tool["name"] for tool in (await routed(client, {"text": "echo a text back"}))["tools"]]
        empty = await client.call_tool("route_tools", {"subtask": {"domain": "maths"}})
        assert "'text' is a required property" in said(empty)["problems"][0]
    assert not events.of(CallFinished)
    reasons = [event.reason for event in events.of(CallRejected)]  # type: ignore[attr-defined]
    assert reasons == ["arguments_invalid", *["tool_not_available"] * 3, "arguments_invalid"]


async def test_what_is_executed_is_paid_for(client_of: OpenClient) -> None:
    spend = SpendSettings(prices={"scripted/add": 0.01}, session=0.015)
    async with client_of(exposure="route", spend=spend) as client:
        await routed(client)
        assert not (await execute(client, "add", a=1, b=2)).is_error
        refused = await execute(client, "add", a=1, b=2)
        assert said(refused)["error"] == "spend_limit_reached"
        assert len(said(refused, 1)["try_next"]["tools"]) == 2


async def test_progress_of_an_executed_tool_reaches_the_client_and_a_cancelled_call_ends(
    client_of: OpenClient, events: MemoryEvents
) -> None:
    seen: list[float] = []

    async def note(progress: float, _total: float | None, _message: str | None) -> None:
        seen.append(progress)

    async with client_of(exposure="route") as client:
        await client.call_tool("execute_tool", {"name": "progress"}, progress_callback=note)
        await until(lambda: seen == [1, 2, 3])
        with anyio.move_on_after(0.5):
            await client.call_tool("execute_tool", {"name": "slow"})
        assert not (await execute(client, "add", a=1, b=2)).is_error
    assert [event.tool for event in events.of(CallFinished)] == [  # type: ignore[attr-defined]
        "scripted/progress",
        "scripted/add",
    ]


async def test_a_connection_may_ask_for_routing_and_without_a_session_nothing_is_remembered(
    open_door: OpenDoor,
) -> None:
    async with open_door() as (url, _), httpx2.AsyncClient(timeout=60) as http:
        asking = {"x-pegboard-exposure": "route"}
        named = Raw(http, url, modern=True, headers=asking | {"x-pegboard-session": "work"})
        assert await named.names() == ROUTING
        assert "search_tools" in await Raw(http, url, modern=True).names()

        for client, others in ((named, 2), (Raw(http, url, modern=True, headers=asking), 0)):
            await client.ask("route_tools", subtask=NUMBERS)
            failed = await client.result("tools/call", name="execute_tool", arguments={"name": "add"})
            assert len(json.loads(failed["content"][1]["text"])["try_next"]["tools"]) == others


@pytest.mark.requirement("001.alg2", "001.eq8")
async def test_what_is_executed_moves_the_traffic_from_a_server_that_fails_within_ten_calls(
    client_of: OpenClient,
) -> None:
    options = {"exposure": "route", "breakers": BreakerSettings(failures=0)}
    async with client_of(scripted("one"), scripted("two"), **options) as client:

        async def best() -> str:
            tools = (await routed(client, {"text": "answer with a protocol error"}))["tools"]
            return str(tools[0]["name"])

        first = await best()
        calls = 0
        while await best() == first:
            await execute(client, first)
            calls += 1
            assert calls <= 10
        assert {first, await best()} == {"one__raises", "two__raises"}


CLOCK = """
import sys
import time
from pathlib import Path
from mcp import MCPError
from mcp.server.mcpserver import MCPServer

server = MCPServer(sys.argv[1])

@server.tool(description=sys.argv[2])
def now() -> str:
    if Path(sys.argv[3] + ".failing").exists():
        raise MCPError(-32050, "the clock has stopped")
    if Path(sys.argv[3] + ".slow").exists():
        time.sleep(4)
    return sys.argv[1]

server.run()
"""


@pytest.mark.timeout(600)
@pytest.mark.requirement("001.alg1", "001.fading")
@pytest.mark.parametrize("how", ["failing", "slow"])
async def test_a_server_that_degrades_loses_its_traffic_within_ten_calls_and_regains_it_after_it_heals(
    client_of: OpenClient, tmp_path: Path, how: str
) -> None:
    """On real processes and the system's clock; the second server is less relevant, as its tool is, and never degrades.

    A second weighs much, so that a slow server loses its traffic soon although it is more relevant; the milliseconds
    by which two sound servers differ weigh less than relevance.
    """
    broken = tmp_path / f"near.{how}"
    specs = [
        ServerSpec(name=name, description=about, command=sys.executable, args=("-c", CLOCK, name, about, str(file)))
        for name, about, file in (
            ("near", "Tell the time of day", tmp_path / "near"),
            ("far", "Tell the hour somewhere", tmp_path / "far"),
        )
    ]
    economics = EconomicsSettings(servers=1, half_life=1.0, server_weight=2.0)
    async with client_of(*specs, exposure="route", economics=economics, breakers=BreakerSettings(failures=0)) as client:

        async def used() -> str:
            """The server of the tool that is best now, which is called."""
            tool = (await routed(client, {"text": "tell the time of day"}))["tools"][0]
            await execute(client, tool["name"])
            return str(tool["server"])

        assert [await used() for _ in range(30)] == ["near"] * 30, "so it is known to be good, when it is so no more"

        broken.touch()
        calls = [await used() for _ in range(11)]
        assert "far" in calls, "ten calls at most before the traffic moves"

        broken.unlink()
        async with asyncio.timeout(150):
            regained = 0
            while regained < 5:
                regained = regained + 1 if await used() == "near" else 0
