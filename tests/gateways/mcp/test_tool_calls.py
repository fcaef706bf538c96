"""Calls through the gateway before a real server: what they cost, and whose fault it is when they fail."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import mcp_types as types
import pytest
from mcp import Client, MCPError

from failing import Failing
from pegboard.clock import SystemClock
from pegboard.errors import SpendLimitReached, UpstreamError
from pegboard.events import CallFinished, CallRejected
from pegboard.gateways.mcp.gateway.tool_calls import fault_of
from pegboard.model import Outcome
from pegboard.settings.storage import SpendSettings
from pegboard.spend_limits import Account, Limits, NanoUsd, nano_usd
from pegboard.stores import MemoryEvents, MemorySpend, MemoryStatistics
from pegboard.stores.redis import RedisServer, RedisSpend
from processes import until
from services import REDIS, delete_keys, needs_redis
from upstream_specs import python, scripted

OpenClient = Callable[..., AbstractAsyncContextManager[Client]]

PRICES = {"scripted/*": 1.0, "gone/*": 1.0}


@pytest.fixture
def store() -> Failing:
    return Failing(MemorySpend(SystemClock()))


class Noting(MemoryStatistics):
    """Keeps the outcomes of tools as they came, without those of servers as a whole."""

    def __init__(self) -> None:
        super().__init__()
        self.outcomes: list[Outcome] = []

    async def observe(self, outcomes: Sequence[Outcome]) -> None:
        self.outcomes += [outcome for outcome in outcomes if outcome.tool.name]


async def used(store: Failing) -> int:
    """Whole dollars that are spent or held back."""
    with pytest.raises(SpendLimitReached) as caught:
        await store.store.reserve(Account(session=""), NanoUsd(1), Limits(key=NanoUsd(0)))
    return caught.value.used // nano_usd(1)


def spend(**limits: float) -> SpendSettings:
    return SpendSettings(prices=PRICES, **limits)


def reason(result: types.CallToolResult) -> dict[str, Any]:
    assert result.is_error
    return dict(json.loads(result.content[0].text))  # type: ignore[union-attr]


async def test_a_call_beyond_the_limit_is_answered_with_why_and_reaches_no_server(
    client_of: OpenClient, store: Failing, events: MemoryEvents
) -> None:
    async with client_of(parts={"spend": store}, spend=spend(session=2)) as client:
        await client.call_tool("echo", {"text": "one"})
        await client.call_tool("invoke_tool", {"name": "fails"})
        refused = reason(await client.call_tool("invoke_tool", {"name": "echo", "arguments": {"text": "three"}}))

    assert refused["error"] == "spend_limit_reached"
    assert "$2 per session" in refused["message"]
    assert refused["remedy"]
    assert [event.tool for event in events.of(CallFinished)] == ["scripted/echo", "scripted/fails"]  # type: ignore[attr-defined]
    assert [event.reason for event in events.of(CallRejected)] == ["spend_limit_reached"]  # type: ignore[attr-defined]
    assert await used(store) == 2


async def test_what_never_reached_a_server_costs_nothing(client_of: OpenClient, store: Failing) -> None:
    async with client_of(scripted(), parts={"spend": store}, spend=spend(day=1)) as client:
        for arguments in ({"a": "one"}, {}):
            assert reason(await client.call_tool("add", arguments))["error"] == "arguments_invalid"
        assert reason(await client.call_tool("ad", {}))["error"] == "tool_not_available"
        await client.call_tool("add", {"a": 1, "b": 2})

    assert await used(store) == 1


async def test_a_call_that_broke_in_the_middle_is_charged_and_one_to_a_server_that_is_gone_is_not(
    client_of: OpenClient, store: Failing
) -> None:
    async with client_of(parts={"spend": store}, spend=spend()) as client:
        assert reason(await client.call_tool("die", {}))["error"] == "upstream_error"
        assert await used(store) == 1
        with pytest.raises(MCPError):
            await client.call_tool("raises", {})
        assert await used(store) == 2, "the server answered"


async def test_a_client_that_cancels_leaves_nothing_held_and_says_nothing_of_the_tool(
    client_of: OpenClient, store: Failing, events: MemoryEvents
) -> None:
    statistics = Noting()
    async with client_of(parts={"spend": store, "statistics": statistics}, spend=spend(day=2)) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "slow", {})
            await until(lambda: "reserve" in store.asked)
            tasks.cancel_scope.cancel()
        await until(lambda: store.asked.count("settle") == 1)
        await client.call_tool("echo", {"text": "there is room for one more"})
        assert reason(await client.call_tool("echo", {"text": "and for no other"}))["error"] == "spend_limit_reached"

    assert not store.store._held
    assert [outcome.tool.name for outcome in statistics.outcomes] == ["echo"]
    assert [event.tool for event in events.of(CallFinished)] == ["scripted/echo"]  # type: ignore[attr-defined]


async def test_with_the_store_down_only_what_has_a_price_and_a_limit_is_refused_and_it_goes_on_when_it_is_back(
    client_of: OpenClient, store: Failing
) -> None:
    settings = SpendSettings(prices={"scripted/add": 1.0}, day=5)
    async with client_of(parts={"spend": store}, spend=settings) as client:
        store.down = True
        assert not (await client.call_tool("echo", {"text": "free"})).is_error
        assert reason(await client.call_tool("add", {"a": 1, "b": 2}))["error"] == "store_error"
        store.down = False
        assert not (await client.call_tool("add", {"a": 1, "b": 2})).is_error

    assert await used(store) == 1


@needs_redis
async def test_calls_at_once_share_a_limit_on_redis(client_of: OpenClient) -> None:
    prefix = f"test {uuid4().hex}"
    server = RedisServer(REDIS, prefix=prefix, timeout=30.0)
    try:
        async with client_of(parts={"spend": RedisSpend(server, SystemClock())}, spend=spend(day=7)) as client:
            results = await asyncio.gather(*(client.call_tool("echo", {"text": "x"}) for _ in range(20)))
        errors = [reason(result)["error"] for result in results if result.is_error]
    finally:
        await delete_keys(prefix)
        await server.close()

    assert errors == ["spend_limit_reached"] * 13


@pytest.mark.requirement("001.eq8")
async def test_a_failed_call_is_the_fault_of_server_caller_or_tool(client_of: OpenClient) -> None:
    statistics = Noting()
    async with client_of(parts={"statistics": statistics}, always_available=("folder",)) as client:
        await client.call_tool("echo", {"text": "fine"})
        await client.call_tool("fails", {})
        await client.call_tool("add", {"a": "no number"})
        await client.call_tool("invoke_tool", {"name": "add", "arguments": {"a": "no number"}})
        with pytest.raises(MCPError):
            await client.call_tool("raises", {})
        await client.call_tool("die", {})

    assert [(outcome.tool.name, outcome.success, outcome.failure) for outcome in statistics.outcomes] == [
        ("echo", True, None),
        ("fails", False, "tool"),
        ("add", False, "caller"),
        ("add", False, "caller"),
        ("raises", False, "server"),
        ("die", False, "server"),
    ]


@pytest.mark.requirement("001.eq8")
async def test_a_result_that_is_not_what_the_tool_promises_is_relayed_and_no_success(client_of: OpenClient) -> None:
    """The scripted server, whose `add` promises a text."""
    statistics, folder = Noting(), str(Path(scripted().args[0]).parent)
    promise = {"type": "object", "properties": {"sum": {"type": "string"}}}
    code = (
        f"import asyncio, sys; sys.path.insert(0, {folder!r}); import scripted;"
        f"scripted.TOOLS[1] = scripted.TOOLS[1].model_copy(update={{'output_schema': {promise!r}}});"
        "asyncio.run(scripted.main())"
    )
    async with client_of(python("scripted", code), parts={"statistics": statistics}) as client:
        result = await client.call_tool("invoke_tool", {"name": "add", "arguments": {"a": 1, "b": 2}})
        await client.call_tool("invoke_tool", {"name": "echo", "arguments": {"text": "fine"}})

    assert (result.is_error, result.structured_content) == (False, {"sum": 3})
    assert [(each.tool.name, each.success, each.failure) for each in statistics.outcomes] == [
        ("add", False, "tool"),
        ("echo", True, None),
    ]


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (MCPError(types.INVALID_PARAMS, "No such city"), "caller"),
        (MCPError(types.URL_ELICITATION_REQUIRED, "Sign in first"), "caller"),
        (MCPError(types.INTERNAL_ERROR, "Oops"), "server"),
        (UpstreamError("weather", "It did not answer."), "server"),
    ],
)
def test_wrong_arguments_and_missing_rights_are_not_the_servers_fault(error: Exception, fault: str) -> None:
    assert fault_of(error) == fault


async def test_a_server_that_cannot_be_reached_has_failed_and_costs_nothing(
    client_of: OpenClient, store: Failing, tmp_path: Any
) -> None:
    """It answers its first start only: what it listed is remembered, and the call finds nobody."""
    statistics, flag = Noting(), tmp_path / "started"
    code = (
        f"import pathlib, runpy, sys; flag = pathlib.Path({str(flag)!r});"
        "flag.exists() and sys.exit(3); flag.touch();"
        f"runpy.run_path({scripted().args[0]!r}, run_name='__main__')"
    )
    parts = {"spend": store, "statistics": statistics}
    async with client_of(python("gone", code), parts=parts, spend=spend(day=1), lazy=True) as client:
        await client.list_tools()
    async with client_of(python("gone", code), parts=parts, spend=spend(day=1), lazy=True) as client:
        for _ in range(2):
            assert reason(await client.call_tool("echo", {"text": "x"}))["error"] == "upstream_error"

    assert await used(store) == 0
    assert [outcome.failure for outcome in statistics.outcomes] == ["server", "server"]
