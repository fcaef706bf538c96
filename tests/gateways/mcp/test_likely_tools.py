"""Tools that a conversation makes likely join its list, and nothing leaves it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Literal

import httpx2
import pytest

from doors import META, Listener, Raw, at_rest
from journals import Journal
from pegboard import Board
from pegboard.clock import SYSTEM_CLOCK
from pegboard.events import RouteDecided, ToolsOffered
from pegboard.gateways.mcp.gateway import likely_tools
from pegboard.gateways.mcp.gateway.caller import Caller
from pegboard.gateways.mcp.gateway.caller_view import tokens_listed
from pegboard.gateways.mcp.gateway.clients import client_kind
from pegboard.gateways.mcp.gateway.gateway import Gateway
from pegboard.gateways.mcp.gateway.host import Host
from pegboard.model import Candidate, ToolId
from pegboard.settings.server_spec import ServerSpec
from pegboard.stores import MemoryEvents
from upstream_specs import scripted

OpenDoor = Callable[..., AbstractAsyncContextManager[tuple[str, Host]]]
OpenListener = Callable[..., AbstractAsyncContextManager[tuple[Listener, Gateway]]]
SKY = ("rain_of_city", "wind_of_city", "sun_of_city")


@pytest.fixture
def servers(tmp_path: Path) -> tuple[ServerSpec, ServerSpec]:
    """Tickets, and the weather."""
    tickets = ("open_ticket", "close_ticket", "assign_ticket", "comment_ticket", "merge_ticket", "split_ticket")
    return Journal("tickets", tmp_path).spec(*tickets), Journal("sky", tmp_path).spec(*SKY)


async def pushed(gateway: Gateway) -> None:
    await gateway.likely.settled()
    await at_rest(gateway)


@pytest.mark.requirement("022.push")
async def test_what_a_call_makes_likely_joins_the_list_and_the_client_is_told(
    listening: OpenListener, servers: tuple[ServerSpec, ServerSpec]
) -> None:
    events = MemoryEvents()
    async with listening(*servers, parts={"events": events}) as (listener, gateway):
        assert await listener.listed() == []
        before = listener.told
        await listener.call("invoke_tool", name="open_ticket", arguments={})
        await pushed(gateway)
        assert listener.told == before + 1
        listed = await listener.listed()
        assert len(listed) == likely_tools.PUSHED
        assert set(listed) <= {"close_ticket", "assign_ticket", "comment_ticket", "merge_ticket", "split_ticket"}
        await listener.call("invoke_tool", name="open_ticket", arguments={})
        await pushed(gateway)
        assert (await listener.listed(), listener.told) == (listed, before + 1), "the same call again says nothing new"
        [offered] = events.of(ToolsOffered)
        assert isinstance(offered, ToolsOffered)
        assert (offered.way, offered.offered, offered.client) == ("push", likely_tools.PUSHED, "opencode")
        assert offered.decision in [each.turn_id for each in events.of(RouteDecided) if isinstance(each, RouteDecided)]


@pytest.mark.requirement("022.push")
async def test_a_search_that_misses_brings_tools_of_the_servers_in_use(
    listening: OpenListener, servers: tuple[ServerSpec, ServerSpec]
) -> None:
    async with listening(*servers) as (listener, gateway):
        await listener.call("invoke_tool", name="rain_of_city", arguments={})
        await pushed(gateway)
        assert set(await listener.listed()) == {"wind_of_city", "sun_of_city"}
        assert await listener.search("qqqq zzzz") == []
        await pushed(gateway)
        assert set(await listener.listed()) == {"wind_of_city", "sun_of_city"}


@pytest.mark.requirement("022.push-keeps")
async def test_a_push_never_removes_what_was_offered(
    listening: OpenListener, servers: tuple[ServerSpec, ServerSpec]
) -> None:
    async with listening(*servers, session_tools=2) as (listener, gateway):
        found = [*await listener.search("rain of city"), *await listener.search("wind of city")]
        assert set(await listener.listed()) == set(found)
        await listener.call("invoke_tool", name="open_ticket", arguments={})
        await pushed(gateway)
        assert set(await listener.listed()) == set(found)


@pytest.mark.requirement("022.push-keeps")
async def test_pushes_stay_within_the_budget_and_leave_room_to_none(
    listening: OpenListener, servers: tuple[ServerSpec, ServerSpec]
) -> None:
    async with listening(*servers) as (_, gateway):
        catalog = gateway.view.catalog
        whole = tokens_listed(catalog, await gateway.list_tools(Caller(session="s", kind=client_kind("opencode"))))
    async with listening(*servers, list_budget=whole + 20) as (listener, gateway):
        await listener.call("invoke_tool", name="open_ticket", arguments={})
        await pushed(gateway)
        assert len(await listener.listed()) <= 1


@pytest.mark.requirement("022.push")
async def test_clients_that_do_not_list_again_and_those_of_2026_are_pushed_nothing(
    listening: OpenListener, open_door: OpenDoor, servers: tuple[ServerSpec, ServerSpec]
) -> None:
    """Revision 2026-07-28: the list MUST NOT vary as a side effect of other requests."""
    async with listening(*servers, name="claude-ai") as (listener, gateway):
        await listener.call("invoke_tool", name="open_ticket", arguments={})
        await pushed(gateway)
        assert await listener.listed() == []
    async with (
        open_door(*servers, exposure="dynamic", push=True) as (url, host),
        httpx2.AsyncClient(trust_env=False, timeout=60) as http,
    ):
        client = Raw(http, url, modern=True, headers={"x-pegboard-session": "mine", "x-pegboard-exposure": "dynamic"})
        await client.call("invoke_tool", name="open_ticket", arguments={})
        await pushed(host.gateway())
        assert await client.names() == META


async def test_pushes_can_be_turned_off(listening: OpenListener) -> None:
    async with listening(scripted(), push=False) as (listener, gateway):
        await listener.call("echo", text="hello")
        await pushed(gateway)
        assert await listener.listed() == []


@pytest.mark.requirement("022.push")
async def test_a_resource_that_was_read_is_part_of_the_conversation(
    listening: OpenListener, servers: tuple[ServerSpec, ServerSpec]
) -> None:
    async with listening(*servers) as (_, gateway):
        caller = Caller(session="s", kind=client_kind("opencode"))
        gateway.likely.read("tickets://42", caller)
        gateway.likely.searched("something new", caller, missed=False)
        await pushed(gateway)
        assert gateway.likely._conversations["s"].text == "something new. tickets://42"


def test_memory_is_bounded_and_a_session_that_ended_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(likely_tools, "MOST_CONVERSATIONS", 3)

    class View:
        pushes = True

    known = likely_tools.LikelyTools(View(), None, events=MemoryEvents(), clock=SYSTEM_CLOCK)  # type: ignore[arg-type]
    for number in range(10):
        for word in "abcdefgh":
            caller = Caller(session=f"s{number}", kind=client_kind("opencode"))
            known.searched(word * 1000, caller, missed=False)
    assert list(known._conversations) == ["s7", "s8", "s9"]
    assert all(len(each.texts) == likely_tools.MOST_TEXTS for each in known._conversations.values())
    assert all(len(text) <= likely_tools.MOST_CHARACTERS for text in known._conversations["s9"].texts)
    known.forget("s9")
    assert list(known._conversations) == ["s7", "s8"]


@pytest.mark.parametrize(("scale", "expected"), [("probability", ["b", "c"]), ("points", ["b"])])
def test_likely_are_tools_of_servers_in_use_and_those_with_some_probability(
    scale: Literal["probability", "points"], expected: list[str]
) -> None:
    scores = {("one", "a"): 0.9, ("one", "b"): 0.01, ("two", "c"): 0.3, ("two", "d"): 0.1}
    candidates = tuple(
        Candidate(tool=ToolId(*tool), score=score, rank=rank) for rank, (tool, score) in enumerate(scores.items())
    )
    decision = replace(Board(tools=[{"name": "tide"}]).route_now("tide"), candidates=candidates, scale=scale)
    found = likely_tools.likely_tools(decision, {ToolId("one", "a"): None})
    assert sorted(tool.name for tool in found) == expected
