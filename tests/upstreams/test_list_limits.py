"""Lists of a server are bounded by entries and by bytes; what goes beyond is left out, and said."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Any

import mcp_types as types
import pytest
from mcp.shared.message import SessionMessage

from pegboard.gateways.mcp.shelves import read_shelf
from pegboard.server_spec import ServerSpec
from pegboard.upstreams import Fleet, Limits, Room
from pegboard.upstreams.limits import ListRequests

SMALL = Limits(entries=1_000, list_bytes=1_000_000)


def hostile(mode: str) -> ServerSpec:
    return ServerSpec(name="hostile", command=sys.executable, args=("-m", "pegboard.bench.hostile.servers", mode))


@pytest.mark.requirement("D7")
def test_a_list_takes_entries_while_there_is_room() -> None:
    room = Room(Limits(entries=3))

    assert room.taken([{"name": "a"}, {"name": "b"}]) == [{"name": "a"}, {"name": "b"}]
    assert room.taken([{"name": "c"}, {"name": "d"}]) == [{"name": "c"}]
    assert "list_limit" in room.full


@pytest.mark.requirement("D7")
def test_a_list_takes_bytes_while_there_is_room() -> None:
    room = Room(Limits(list_bytes=100))

    assert len(room.taken([{"name": "x" * 40}] * 3)) == 1
    assert "list_bytes" in room.full


@pytest.mark.requirement("D7")
def test_only_the_answer_to_a_request_for_a_list_has_the_limit_of_one() -> None:
    lists, limits = ListRequests(), Limits(list_bytes=10)
    lists.sent(SessionMessage(types.JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/list")))
    lists.sent(SessionMessage(types.JSONRPCRequest(jsonrpc="2.0", id=2, method="tools/call")))

    assert lists.answered(b'{"jsonrpc":"2.0","id":2,"result":{"long":"enough"}}', limits) is None
    assert lists.answered(b'{"jsonrpc":"2.0","id":1,"result":{"long":"enough"}}', limits) == 1
    assert lists.answered(b'{"jsonrpc":"2.0","id":1,"result":{"long":"enough"}}', limits) is None


@pytest.mark.requirement("D7")
@pytest.mark.parametrize(
    ("mode", "why"),
    [("pages", "list_limit"), ("one-page", "list_limit")],
)
async def test_of_a_server_without_measure_the_first_tools_are_taken(
    fleet_of: Callable[..., Fleet], mode: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    limits = Limits(entries=1_000)
    with caplog.at_level(logging.WARNING):
        async with fleet_of(hostile(mode), limits=limits, connect_timeout=60.0) as fleet:
            await fleet.settled(60)
            [status] = fleet.status()

    assert status.state == "ready"
    assert status.tools == 1_000
    assert why in caplog.text


@pytest.mark.requirement("D7")
async def test_a_page_that_is_larger_than_a_list_may_be_is_not_read(fleet_of: Callable[..., Fleet]) -> None:
    async with fleet_of(hostile("long-descriptions"), limits=SMALL, connect_timeout=60.0) as fleet:
        await fleet.settled(60)
        [status] = fleet.status()

    assert (status.state, status.tools) == ("unhealthy", 0)
    assert "list_bytes" in status.reason


@pytest.mark.requirement("D7")
async def test_of_resources_without_end_the_first_are_taken(fleet_of: Callable[..., Fleet]) -> None:
    async with fleet_of(hostile("resources"), limits=SMALL, connect_timeout=60.0) as fleet:
        await fleet.settled(60)
        found: Any = await read_shelf(fleet.upstream("hostile"), "resources")

    assert len(found) == 1_000
