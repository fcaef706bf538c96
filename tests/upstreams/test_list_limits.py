"""Lists of a server are bounded by entries and by bytes; what goes beyond is left out, and said."""

from __future__ import annotations

import gzip
import json
import logging
import sys
from collections.abc import Callable
from typing import Any

import mcp_types as types
import pytest
from mcp.shared.message import SessionMessage

from compressors import Compressor, fleet_before
from pegboard.gateways.mcp.resources.resource_listing import read_list
from pegboard.settings.server_spec import ServerSpec
from pegboard.upstreams import Fleet, ListBudget, UpstreamLimits
from pegboard.upstreams.limits import values_in
from pegboard.upstreams.list_answers import ListRequests, ListTooLarge, cut

SMALL = UpstreamLimits(entries=1_000, list_bytes=1_000_000)


def hostile(mode: str) -> ServerSpec:
    return ServerSpec(name="hostile", command=sys.executable, args=("-m", "pegboard_bench.hostile.servers", mode))


@pytest.mark.requirement("D7")
def test_a_list_takes_entries_while_there_is_room() -> None:
    room = ListBudget(UpstreamLimits(entries=3))

    assert room.taken([{"name": "a"}, {"name": "b"}]) == [{"name": "a"}, {"name": "b"}]
    assert room.taken([{"name": "c"}, {"name": "d"}]) == [{"name": "c"}]
    assert "list_limit" in room.full


@pytest.mark.requirement("D7")
def test_a_list_takes_bytes_while_there_is_room() -> None:
    room = ListBudget(UpstreamLimits(list_bytes=100))

    assert len(room.taken([{"name": "x" * 40}] * 3)) == 1
    assert "list_bytes" in room.full


@pytest.mark.requirement("D7")
def test_only_the_answer_to_a_request_for_a_list_has_the_limit_of_one() -> None:
    lists = ListRequests()
    lists.sent(SessionMessage(types.JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/list")))
    lists.sent(SessionMessage(types.JSONRPCRequest(jsonrpc="2.0", id=2, method="tools/call")))

    assert lists.answered(b'{"jsonrpc":"2.0","id":2,"result":{"long":"enough"}}') is None
    assert lists.answered(b'{"jsonrpc":"2.0","id":1,"result":{"long":"enough"}}') == 1
    assert lists.answered(b'{"jsonrpc":"2.0","id":1,"result":{"long":"enough"}}') is None


@pytest.mark.requirement("D7")
@pytest.mark.parametrize(
    ("mode", "why"),
    [("pages", "list_limit"), ("one-page", "list_limit")],
)
async def test_of_a_server_without_measure_the_first_tools_are_taken(
    fleet_of: Callable[..., Fleet], mode: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    limits = UpstreamLimits(entries=1_000)
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
        found: Any = await read_list(fleet.upstream("hostile"), "resources")

    assert len(found) == 1_000


def page(entries: int, **more: Any) -> bytes:
    tools = [
        {"name": f"tool_{n}", "description": "does it " * 3, "inputSchema": {"type": "object"}} for n in range(entries)
    ]
    return json.dumps({"jsonrpc": "2.0", "result": {"tools": tools, "nextCursor": "c"} | more, "id": 7}).encode()


@pytest.mark.requirement("D7")
def test_a_page_is_cut_before_it_is_parsed_and_shows_that_it_goes_on() -> None:
    whole = page(20_000)

    short = json.loads(cut(whole, UpstreamLimits(entries=1_000)))

    assert [tool["name"] for tool in short["result"].pop("tools")] == [f"tool_{n}" for n in range(1_001)]
    assert short == {"jsonrpc": "2.0", "id": 7, "result": {"nextCursor": "c"}}


@pytest.mark.requirement("D7")
def test_the_catalog_of_an_honest_server_is_not_touched() -> None:
    properties = {f"field_{n}": {"type": "string", "description": "what it is for"} for n in range(10)}
    tools = [{"name": f"tool_{n}", "inputSchema": {"type": "object", "properties": properties}} for n in range(5_000)]
    whole = json.dumps({"jsonrpc": "2.0", "id": 7, "result": {"tools": tools}}).encode()

    assert len(whole) > 3_000_000
    assert cut(whole, UpstreamLimits()) is whole


@pytest.mark.requirement("D7")
@pytest.mark.parametrize("unreadable", [b"", b'"odd":NaN,'], ids=["JSON", "what only lenient parsers read"])
def test_a_page_of_more_values_than_its_bytes_may_stand_for_is_not_parsed(unreadable: bytes) -> None:
    whole = b'{"jsonrpc":"2.0","id":7,"result":{' + unreadable + b'"tools":[{"a":[' + b"{}," * 600_000 + b"{}]}]}}"

    with pytest.raises(ListTooLarge, match="list_bytes"):
        cut(whole, UpstreamLimits())


@pytest.mark.requirement("D7")
def test_pages_of_many_values_are_left_out_with_the_setting_that_would_have_them() -> None:
    room = ListBudget(UpstreamLimits(list_bytes=1_600))

    assert len(room.taken([{"a": [1] * 60}] * 3)) == 1
    assert "list_bytes" in room.full
    assert room.values > values_in(b"[]")


@pytest.mark.requirement("D7")
def test_the_answer_to_a_list_is_known_wherever_its_id_stands() -> None:
    lists = ListRequests()
    lists.asked("tools/list", 7)
    hidden = (
        b'{"x":"' + b"x" * 10_000 + b'","id":7,"result":{"tools":["' + b"x" * 300_000 + b'"]},"y":"' + b"y" * 10_000
    )

    assert lists.answered(hidden + b'"}') == 7


@pytest.mark.requirement("D7")
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
@pytest.mark.parametrize("lines", [False, True], ids=["in one line", "in many lines"])
async def test_a_page_that_comes_by_http_is_cut_too(kind: str, lines: bool, caplog: pytest.LogCaptureFixture) -> None:
    answering = Lister(kind, page(20_000), lines=lines)
    with caplog.at_level(logging.WARNING):
        async with fleet_before(answering, limits=UpstreamLimits(entries=1_000)) as fleet:
            [status] = fleet.status()

    assert (status.state, status.tools) == ("ready", 1_000)
    assert "list_limit" in caplog.text


class Lister(Compressor):
    """A server of one page."""

    def __init__(self, kind: str, listing: bytes, *, lines: bool) -> None:
        super().__init__(kind)
        self.listing, self.lines = listing, lines

    def body(self, message: dict[str, Any]) -> bytes:
        if message["method"] != "tools/list":
            return super().body(message)
        said = self.listing.replace(b'"id": 7', b'"id": %d' % message["id"])
        between = b"\ndata: " if self.kind == "text/event-stream" else b"\n"
        said = said.replace(b"}, {", b"}," + between + b"{") if self.lines else said
        return gzip.compress(self.framed(said) + b"\n\n")
