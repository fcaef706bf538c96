"""The gateway before real servers, through the real SDK client, in both protocol eras."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, MCPError
from pydantic import TypeAdapter

from journals import PLAIN
from pegboard import Catalog
from pegboard.events import CallFinished, CallRejected, RouteDecided, ToolsListed, ToolsSearched
from pegboard.gateways.mcp.gateway import meta_tools
from pegboard.gateways.mcp.gateway.meta_definitions import META_TOOLS
from pegboard.model import Decision, Floats
from pegboard.routing_board import RoutingBoard
from pegboard.settings.server_spec import ServerSpec
from pegboard.stores import MemoryEvents
from pegboard.testing import FakeEncoder
from servers.scripted import TOOLS
from upstream_specs import SCRIPTED, python, scripted

OpenClient = Callable[..., AbstractAsyncContextManager[Client]]

ANY: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("echo", {"text": "hällo 世界"}),
    ("add", {"a": 1, "b": 2}),
    ("odd", {"p": {"x": None}, "n": None, "big": 2**60}),
    ("fails", {}),
    ("picture", {}),
]


async def raw(client: Client, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The result as it is on the wire."""
    request = types.CallToolRequest(params=types.CallToolRequestParams(name=name, arguments=arguments))
    return await client.session.send_request(request, ANY)  # type: ignore[type-var]


async def ask(client: Client, name: str, /, **arguments: Any) -> dict[str, Any]:
    """The JSON that a meta-tool answers."""
    result = await client.call_tool(name, arguments)
    return dict(json.loads(result.content[0].text))  # type: ignore[union-attr]


def without_era(result: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in result.items() if key != "resultType"}


async def names_listed(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


@pytest.mark.requirement("002.static-proxy")
async def test_a_client_is_listed_the_four_meta_tools_with_the_pool_in_the_search_tool(client_of: OpenClient) -> None:
    async with client_of() as client:
        tools = (await client.list_tools()).tools
    assert [tool.name for tool in tools] == ["list_tool_categories", "search_tools", "describe_tools", "invoke_tool"]
    assert "echo: Echo a text back" in (tools[1].description or "")


async def test_always_available_tools_are_listed_beside_the_meta_tools(client_of: OpenClient) -> None:
    async with client_of(always_available=("scripted/ad*", "echo")) as client:
        assert (await names_listed(client))[4:] == ["echo", "add"]


async def test_a_small_board_is_listed_whole_and_as_its_servers_define_it(
    client_of: OpenClient, era: str, fleet_of: Any
) -> None:
    async with client_of(exposure="auto", eager_tools=13) as client:
        request = types.ListToolsRequest()
        listed = (await client.session.send_request(request, ANY))["tools"]  # type: ignore[type-var]
    async with fleet_of(scripted()) as fleet:
        await fleet.settled(60)
        direct = [tool.definition for tool in fleet.catalog().tools]
    assert listed == direct
    assert json.dumps(listed) == json.dumps(direct), "key order too"


@pytest.mark.requirement("M15")
async def test_a_board_is_not_taken_for_small_while_servers_are_starting(client_of: OpenClient) -> None:
    slow = python("slow", "import time; time.sleep(600)")
    async with client_of(scripted(), slow, exposure="auto", eager_tools=100, start_wait=3.0) as client:
        assert (await names_listed(client))[:2] == ["list_tool_categories", "search_tools"]
        async with asyncio.timeout(30):
            while "scripted" in (starting := (await ask(client, "search_tools", query="echo"))["servers_not_ready"]):
                pass

        assert starting == {"slow": "starting"}
        assert (await names_listed(client))[:2] == ["list_tool_categories", "search_tools"]


def late(released: Path) -> ServerSpec:
    """A server with the tool `forecast_rain` that starts once a file is there."""
    wait = f"import pathlib, runpy, sys, time\nwhile not pathlib.Path({str(released)!r}).exists(): time.sleep(0.01)\n"
    run = f"sys.argv = ['plain', {str(released.with_suffix('.journal'))!r}, 'forecast_rain']\n"
    return python("late", f"{wait}{run}runpy.run_path({PLAIN!r}, run_name='__main__')")


@pytest.mark.requirement("M15")
async def test_a_search_that_finds_nothing_certain_waits_for_servers_that_never_listed(
    client_of: OpenClient, tmp_path: Path
) -> None:
    """However long ago the gateway was started."""
    released = tmp_path / "released"
    terms = {"start_wait": 0.01, "search_wait": 100.0, "connect_timeout": 200.0}
    async with client_of(scripted(), late(released), **terms) as client:
        async with asyncio.timeout(60):
            while "scripted" in (await ask(client, "list_tool_categories"))["servers_not_ready"]:
                pass
        certain = await ask(client, "search_tools", query="echo")
        released.touch()
        found = await ask(client, "search_tools", query="forecast rain")
    assert certain["tools"][0]["name"] == "echo"
    said = "1 server is still starting, with tools that are not known yet: late. Search again in a moment."
    assert certain["search_again"] == said
    assert found["tools"][0]["name"] == "forecast_rain"
    assert "search_again" not in found


@pytest.mark.requirement("M15")
async def test_a_search_does_not_wait_for_ever_and_says_which_servers_are_starting(
    client_of: OpenClient, tmp_path: Path
) -> None:
    async with client_of(scripted(), late(tmp_path / "never"), start_wait=0.5) as client:
        answer = await ask(client, "search_tools", query="forecast rain")
        elsewhere = await ask(client, "search_tools", query="forecast rain", server="nowhere")
        there = await ask(client, "search_tools", query="forecast rain", server="late")
    assert "late" in answer["search_again"]
    assert "late" in there["search_again"]
    assert there["why"] == meta_tools.NOTHING_YET
    assert "search_again" not in elsewhere
    assert elsewhere["why"] == meta_tools.NOTHING_FITS


@pytest.mark.requirement("M15")
async def test_a_call_of_an_unknown_tool_says_which_servers_are_starting(client_of: OpenClient, tmp_path: Path) -> None:
    async with client_of(scripted(), late(tmp_path / "never"), start_wait=0.5) as client:
        result = await client.call_tool("forecast_rain", {})
    text = result.content[0].text  # type: ignore[union-attr]
    assert result.is_error
    assert "late): call it again in a moment" in text
    assert "search_tools" in text


async def test_search_finds_a_tool_by_what_it_does(client_of: OpenClient, events: MemoryEvents) -> None:
    async with client_of() as client:
        answer = await ask(client, "search_tools", query="add two numbers", limit=3)
    assert answer["tools"][0] == {
        "name": "add",
        "server": "scripted",
        "category": "scripted",
        "signature": "add(a: number, b: number)",
        "sure": "high",
        "description": "Add two numbers",
    }
    assert len(answer["tools"]) <= 3
    assert "servers_not_ready" not in answer
    assert events.of(RouteDecided)[0].candidates[0] == "scripted/add"  # type: ignore[attr-defined]


@pytest.mark.requirement("B9")
@pytest.mark.parametrize(("exposure", "tool"), [("static", "invoke_tool"), ("route", "execute_tool")])
async def test_a_search_says_how_to_call_what_it_found_and_that_call_works_as_it_stands(
    client_of: OpenClient, exposure: str, tool: str
) -> None:
    async with client_of(exposure=exposure) as client:
        found = await ask(client, "search_tools", query="add two numbers")
        category = await ask(client, "list_tool_categories", category="scripted")
        nothing = await ask(client, "search_tools", query="add two numbers", server="nowhere")
        results = []
        for answer in (found, category):
            called, _, arguments = answer["call"].removeprefix("Call ").partition(" with ")
            assert called == tool
            results.append(await client.call_tool(called, json.loads(arguments.removesuffix("."))))
    assert results[0].structured_content == {"sum": 2}
    assert not any(result.is_error for result in results)
    assert "call" not in nothing


@pytest.mark.requirement("B9")
async def test_where_all_tools_are_listed_a_search_says_that_their_names_call_them(client_of: OpenClient) -> None:
    async with client_of(exposure="eager") as client:
        found = await ask(client, "search_tools", query="add two numbers")
    assert "call them by their names" in found["call"]


@pytest.mark.requirement("B11")
async def test_lists_and_searches_are_events_with_the_tokens_that_were_saved(
    client_of: OpenClient, events: MemoryEvents
) -> None:
    async with client_of() as client:
        await client.list_tools()
        async with asyncio.timeout(60):
            while "ranked_by" in await ask(client, "search_tools", query="add two numbers", limit=2):
                pass
    listed, searched = events.of(ToolsListed)[0], events.of(ToolsSearched)[-1]
    assert (listed.exposure, listed.tools, listed.listed) == ("static", len(TOOLS), 4)  # type: ignore[attr-defined]
    assert listed.tokens_after > 0  # type: ignore[attr-defined]
    assert listed.tokens_before > 0  # type: ignore[attr-defined]
    assert (searched.found, searched.by_words) == (2, False)  # type: ignore[attr-defined]
    assert len(searched.at_hand) == 2  # type: ignore[attr-defined]
    assert searched.at_hand[0] == "scripted/add"  # type: ignore[attr-defined]


async def test_a_search_says_as_an_event_what_its_client_has_at_hand(
    client_of: OpenClient, events: MemoryEvents
) -> None:
    async with client_of(always_available=("echo",)) as client:
        await ask(client, "search_tools", query="add two numbers", limit=1)
    [searched] = events.of(ToolsSearched)
    assert (searched.found, searched.at_hand) == (1, ("scripted/add", "scripted/echo"))  # type: ignore[attr-defined]


async def test_always_available_tools_that_a_client_may_not_use_are_not_at_hand(
    client_of: OpenClient, events: MemoryEvents
) -> None:
    rules = ({"tools": "scripted/odd", "scope": "maths"},)
    async with client_of(always_available=("odd", "echo"), rules=rules) as client:
        await ask(client, "search_tools", query="add two numbers", limit=1)
    [searched] = events.of(ToolsSearched)
    assert searched.at_hand == ("scripted/add", "scripted/echo")  # type: ignore[attr-defined]


class Held(FakeEncoder):
    """An encoder that does not answer until it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may = asyncio.Event()

    async def encode(self, texts: Sequence[str]) -> Floats:
        await self.may.wait()
        return await super().encode(texts)


@pytest.mark.requirement("B11")
async def test_while_tools_are_being_embedded_a_search_says_that_it_goes_by_words(client_of: OpenClient) -> None:
    encoder = Held()
    async with client_of(parts={"encoder": encoder}) as client:
        await client.list_tools()
        early = await ask(client, "search_tools", query="add two numbers")
        encoder.may.set()
        async with asyncio.timeout(60):
            while "ranked_by" in (late := await ask(client, "search_tools", query="add two numbers")):
                pass
    assert early["tools"][0]["name"] == late["tools"][0]["name"] == "add"
    assert "words alone: the tools are still being embedded" in early["ranked_by"]


async def test_tools_that_go_during_a_search_are_left_out_of_its_answer(
    client_of: OpenClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = RoutingBoard.search

    async def changing(board: RoutingBoard, *asked: Any, **more: Any) -> Decision:
        decision = await search(board, *asked, **more)
        server, tools = board.catalog.servers["scripted"], board.catalog.of_server("scripted")
        board.replace_catalog(Catalog.build([(server, [tool for tool in tools if tool.name != "add"])]))
        return decision

    async with client_of() as client:
        before = await ask(client, "search_tools", query="add two numbers", limit=3)
        monkeypatch.setattr(RoutingBoard, "search", changing)
        after = await ask(client, "search_tools", query="add two numbers", limit=3)

    found = [[tool["name"] for tool in answer["tools"]] for answer in (before, after)]
    assert found[0][0] == "add"
    assert found[1]  # in another order, if the tools have been embedded meanwhile
    assert "add" not in found[1]


async def test_search_is_narrowed_to_a_server(client_of: OpenClient) -> None:
    async with client_of(scripted("one"), scripted("two")) as client:
        answer = await ask(client, "search_tools", query="add two numbers", server="two")
        none = await ask(client, "search_tools", query="add two numbers", server="three")
    assert {tool["server"] for tool in answer["tools"]} == {"two"}
    assert none["tools"] == []


async def test_categories_are_counted_and_one_is_listed(client_of: OpenClient) -> None:
    async with client_of() as client:
        answer = await ask(client, "list_tool_categories")
        one = await ask(client, "list_tool_categories", category="scripted")
        unknown = await client.call_tool("list_tool_categories", {"category": "nope"})
    (category,) = answer["categories"]
    assert (category["category"], category["tools"]) == ("scripted", len(TOOLS))
    assert "echo" in category["description"]
    assert "echo" in one["tools"]
    assert unknown.is_error


async def test_describe_gives_definitions_and_says_what_is_near_an_unknown_name(client_of: OpenClient) -> None:
    async with client_of() as client:
        answer = await ask(client, "describe_tools", names=["odd", "ecko"])
    assert answer["tools"][0]["inputSchema"]["x-vendor"] == {"keep": None}
    assert answer["unknown"] == {"ecko": ["echo"]}


@pytest.mark.requirement("M7")
@pytest.mark.requirement("M8")
@pytest.mark.parametrize(("name", "arguments"), CALLS, ids=[name for name, _ in CALLS])
async def test_results_are_those_of_a_direct_call(
    client_of: OpenClient, fleet_of: Any, name: str, arguments: dict[str, Any]
) -> None:
    async with fleet_of(scripted()) as fleet:
        await fleet.settled(60)
        direct = await fleet.call(fleet.catalog().by_name[name][0].id, arguments)
    async with client_of() as client:
        called = await raw(client, name, arguments)
        invoked = await raw(client, "invoke_tool", {"name": name, "arguments": arguments})
    assert without_era(called) == without_era(invoked) == without_era(direct)


@pytest.mark.requirement("M8")
async def test_a_protocol_error_keeps_its_code_and_data_both_ways(client_of: OpenClient) -> None:
    async with client_of() as client:
        for name, arguments in (("raises", {}), ("invoke_tool", {"name": "raises"})):
            with pytest.raises(MCPError) as raised:
                await client.call_tool(name, arguments)
            assert (raised.value.code, raised.value.data) == (-32050, {"why": "test"})


@pytest.mark.requirement("M17")
async def test_progress_reaches_the_caller_directly_and_through_invoke(client_of: OpenClient) -> None:
    seen: list[float] = []

    async def note(progress: float, _total: float | None, _message: str | None) -> None:
        seen.append(progress)

    async with client_of() as client:
        await client.call_tool("progress", {}, progress_callback=note)
        await client.call_tool("invoke_tool", {"name": "progress"}, progress_callback=note)
    assert seen == [1.0, 2.0, 3.0] * 2


@pytest.mark.requirement("M24")
async def test_a_name_that_is_listed_is_also_found_described_and_invoked(client_of: OpenClient) -> None:
    async with client_of(always_available=("echo",)) as client:
        assert "echo" in await names_listed(client)
        assert (await ask(client, "describe_tools", names=["echo"]))["tools"][0]["name"] == "echo"
        direct = await raw(client, "echo", {"text": "x"})
        assert without_era(
            await raw(client, "invoke_tool", {"name": "echo", "arguments": {"text": "x"}})
        ) == without_era(direct)


async def test_wrong_arguments_are_answered_with_the_schema_before_any_server_sees_them(
    client_of: OpenClient, events: MemoryEvents
) -> None:
    async with client_of() as client:
        for name, arguments in (("invoke_tool", {"name": "add", "arguments": {"a": "one"}}), ("add", {"a": "one"})):
            result = await client.call_tool(name, arguments)
            error = json.loads(result.content[0].text)  # type: ignore[union-attr]
            assert result.is_error
            assert error["error"] == "arguments_invalid"
            assert any("'b' is a required property" in problem for problem in error["problems"])
            assert error["inputSchema"]["required"] == ["a", "b"]
    assert not events.of(CallFinished)
    assert [event.reason for event in events.of(CallRejected)] == ["arguments_invalid"] * 2  # type: ignore[attr-defined]


@pytest.mark.requirement("M12")
@pytest.mark.parametrize("name", sorted(META_TOOLS))
async def test_invoke_refuses_to_call_the_meta_tools(client_of: OpenClient, name: str) -> None:
    async with client_of() as client:
        result = await client.call_tool("invoke_tool", {"name": name, "arguments": {"name": "echo"}})
    assert result.is_error
    assert "directly" in json.loads(result.content[0].text)["remedy"]  # type: ignore[union-attr]


async def test_an_unknown_tool_is_answered_with_names_that_are_near(client_of: OpenClient) -> None:
    async with client_of() as client:
        for name, arguments in (("ech", {"text": "x"}), ("invoke_tool", {"name": "ech", "arguments": {"text": "x"}})):
            result = await client.call_tool(name, arguments)
            error = json.loads(result.content[0].text)  # type: ignore[union-attr]
            assert result.is_error
            assert error["error"] == "tool_not_available"
            assert error["available"] == ["echo"]


async def test_a_meta_tool_called_wrongly_says_what_was_wrong(client_of: OpenClient) -> None:
    async with client_of() as client:
        result = await client.call_tool("search_tools", {"q": "add"})
    assert result.is_error
    assert "'query' is a required property" in result.content[0].text  # type: ignore[union-attr]


@pytest.mark.requirement("M11")
async def test_a_name_that_two_servers_share_is_called_by_server(client_of: OpenClient) -> None:
    async with client_of(scripted("one"), scripted("two")) as client:
        ambiguous = await ask(client, "invoke_tool", name="echo", arguments={"text": "x"})
        assert ambiguous["available"] == ["one__echo", "two__echo"]
        for name in ("two__echo", "two/echo"):
            result = await client.call_tool("invoke_tool", {"name": name, "arguments": {"text": name}})
            assert result.content[0].text == name  # type: ignore[union-attr]


@pytest.mark.requirement("M12")
async def test_a_servers_tool_named_like_ours_is_renamed_and_still_works(client_of: OpenClient) -> None:
    code = f"""
import runpy, sys
module = runpy.run_path({SCRIPTED!r})
module["TOOLS"][0].name = "search_tools"
import asyncio; asyncio.run(module["main"]())
"""
    async with client_of(python("odd-one", code)) as client:
        described = await ask(client, "describe_tools", names=["odd-one__search_tools"])
        assert described["tools"][0]["description"] == "Echo a text back"
        assert "tools" in await ask(client, "search_tools", query="echo")


@pytest.mark.requirement("M2")
@pytest.mark.requirement("M3")
async def test_what_the_caller_may_not_use_is_neither_found_nor_described_nor_called(client_of: OpenClient) -> None:
    rules = (
        {"tools": "scripted/ad*", "scope": "maths"},
        {"tools": "scripted/odd", "requires": ["milestone_reached:x"]},
    )
    async with client_of(rules=rules) as client:
        tools = (await client.list_tools()).tools
        assert "add: Add two numbers" not in (tools[1].description or "")
        found = await ask(client, "search_tools", query="add two numbers", limit=20)
        assert not {"add", "odd"} & {tool["name"] for tool in found["tools"]}
        assert (await ask(client, "describe_tools", names=["add"]))["tools"] == []
        for name in ("add", "odd"):
            assert (await client.call_tool(name, {"a": 1, "b": 2})).is_error
            assert (await client.call_tool("invoke_tool", {"name": name, "arguments": {"a": 1, "b": 2}})).is_error
    async with client_of(rules=rules, scopes=("maths",)) as client:
        assert not (await client.call_tool("add", {"a": 1, "b": 2})).is_error


async def test_a_precondition_on_earlier_output_opens_once_that_tool_has_answered(client_of: OpenClient) -> None:
    rules = ({"tools": "scripted/add", "requires": ["has_prior_tool_output:ec"]},)
    async with client_of(rules=rules) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).is_error
        await client.call_tool("echo", {"text": "x"})
        assert not (await client.call_tool("add", {"a": 1, "b": 2})).is_error


async def test_a_server_that_is_down_is_named_by_search_and_categories(client_of: OpenClient) -> None:
    async with client_of(scripted(), ServerSpec(name="gone", command="no-such-command")) as client:
        for name, arguments in (("search_tools", {"query": "echo"}), ("list_tool_categories", {})):
            assert "no-such-command" in (await ask(client, name, **arguments))["servers_not_ready"]["gone"]


async def test_a_call_that_kills_its_server_is_an_error_and_other_servers_answer(client_of: OpenClient) -> None:
    async with client_of(scripted("one"), scripted("two")) as client:
        died = await client.call_tool("one__die", {})
        alive = await client.call_tool("two__echo", {"text": "x"})
    assert died.is_error
    assert "closed the connection" in died.content[0].text  # type: ignore[union-attr]
    assert not alive.is_error


@pytest.mark.requirement("M17")
async def test_cancelling_a_call_cancels_it_at_the_server(client_of: OpenClient) -> None:
    async with client_of() as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await client.call_tool("slow", {})
        assert not (await client.call_tool("echo", {"text": "x"})).is_error


@pytest.mark.requirement("M25")
@pytest.mark.requirement("mcp.cache-hints")
async def test_the_list_is_never_offered_to_shared_caches(client_of: OpenClient, era: str) -> None:
    async with client_of() as client:
        listed = await client.session.send_request(types.ListToolsRequest(), ANY)  # type: ignore[type-var]
    assert listed.get("cacheScope") == ("private" if era == "auto" else None)


@pytest.mark.requirement("mcp.list-stable")
async def test_two_listings_are_equal_whatever_happened_in_between(client_of: OpenClient) -> None:
    async with client_of() as client:
        first = await client.session.send_request(types.ListToolsRequest(), ANY)  # type: ignore[type-var]
        await ask(client, "search_tools", query="add")
        await client.call_tool("echo", {"text": "x"})
        assert first == await client.session.send_request(types.ListToolsRequest(), ANY)  # type: ignore[type-var]


async def test_search_answers_by_words_when_the_encoder_is_broken(client_of: OpenClient, encoder: Any) -> None:
    encoder.broken = True
    async with client_of() as client:
        assert (await ask(client, "search_tools", query="add two numbers"))["tools"][0]["name"] == "add"


async def test_search_answers_with_the_best_matches_not_with_what_is_always_there(client_of: OpenClient) -> None:
    async with client_of(always_available=("fails", "picture", "progress", "folder", "add")) as client:
        answer = await ask(client, "search_tools", query="echo a text back", limit=2)
    assert answer["tools"][0]["name"] == "echo"


async def test_a_rule_on_a_bare_name_holds_too(client_of: OpenClient) -> None:
    async with client_of(rules=({"tools": "add", "scope": "maths"},)) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).is_error


async def test_a_server_that_is_down_keeps_its_place_in_names_and_listing(client_of: OpenClient) -> None:
    async with client_of(scripted("one"), scripted("two"), exposure="eager") as client:
        before = await names_listed(client)
        await client.call_tool("two__die", {})
        assert await names_listed(client) == before
        assert not (await client.call_tool("one__echo", {"text": "x"})).is_error


async def test_a_precondition_does_not_change_the_list(client_of: OpenClient) -> None:
    rules = ({"tools": "scripted/add", "requires": ["has_prior_tool_output:ec"]},)
    async with client_of(rules=rules, exposure="eager") as client:
        before = await names_listed(client)
        await client.call_tool("echo", {"text": "x"})
        assert await names_listed(client) == before
