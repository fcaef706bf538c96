"""Approach D of the lazy-loading PRD, with the real SDK client: search, enable, notify, list, call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import httpx2
import pytest

from doors import META, Listener, Raw, at_rest
from journals import Journal
from pegboard.gateways.mcp.gateway.gateway import Gateway
from pegboard.gateways.mcp.gateway.host import Host
from pegboard.stores import MemoryStatistics
from pegboard.usage import LEAST_CALLS
from processes import until
from servers.scripted import TOOLS
from upstream_specs import scripted

OpenDoor = Callable[..., AbstractAsyncContextManager[tuple[str, Host]]]
OpenListener = Callable[..., AbstractAsyncContextManager[tuple[Listener, Gateway]]]


@pytest.mark.requirement("002.approach-d")
@pytest.mark.requirement("002.list-changed")
@pytest.mark.requirement("mcp.list-changed")
async def test_what_a_search_finds_is_told_of_listed_and_called_by_its_name(listening: OpenListener) -> None:
    async with listening() as (listener, _):
        capabilities = listener.client.server_capabilities
        assert capabilities.tools is not None
        assert capabilities.tools.list_changed
        assert await listener.listed() == []
        before = listener.told
        assert await listener.search("add two numbers") == ["add"]
        await until(lambda: listener.told == before + 1)
        assert await listener.listed() == ["add"]
        tools = (await listener.client.list_tools()).tools
        assert tools[4].input_schema["required"] == ["a", "b"]
        assert "by its name" in (tools[1].description or "")
        assert await listener.call("add", a=1, b=2) == "3"


@pytest.mark.requirement("B1")
async def test_claude_code_finds_the_meta_tools_loaded_and_lists_again_what_a_search_found(
    listening: OpenListener,
) -> None:
    async with listening(name="claude-code", always_available=("echo",)) as (listener, _):
        first = (await listener.client.list_tools()).tools
        assert [tool.name for tool in first] == [*META, "echo"]
        assert all((tool.meta or {}).get("anthropic/alwaysLoad") for tool in first)
        before = listener.told
        await listener.search("add two numbers")
        await until(lambda: listener.told > before)
        found = {tool.name: tool.meta or {} for tool in (await listener.client.list_tools()).tools}
        assert "anthropic/alwaysLoad" not in found["add"], "its definition would invalidate the client's prompt cache"


@pytest.mark.requirement("B9")
async def test_what_was_found_can_be_called_before_the_client_lists_again(listening: OpenListener) -> None:
    """opencode and Codex refuse a name that is not in their list; Claude Code lists again after its next request."""
    async with listening() as (listener, _):
        answer = await listener.ask("search_tools", query="add two numbers", limit=1)
        called, _, rest = answer["call"].removeprefix("Call ").partition(" with ")
        arguments, later = rest.split(". ", 1)
        assert called == "invoke_tool"
        assert "once a tool is in your list" in later.lower()
        assert await listener.call(called, **json.loads(arguments)) == "2"


@pytest.mark.requirement("002.accumulation")
async def test_what_was_found_stays_and_is_told_of_once(listening: OpenListener) -> None:
    async with listening() as (listener, gateway):
        await listener.search("add two numbers")
        await listener.search("echo a text back")
        await at_rest(gateway)
        told = listener.told
        await listener.search("add two numbers")
        await at_rest(gateway)
        assert set(await listener.listed()) == {"add", "echo"}
        assert listener.told == told, "nothing was new"


@pytest.mark.requirement("002.accumulation-cap")
async def test_beyond_the_cap_the_tool_that_was_used_longest_ago_leaves_and_can_still_be_called(
    listening: OpenListener,
) -> None:
    async with listening(session_tools=2) as (listener, _):
        assert await listener.search("add two numbers") == ["add"]
        assert await listener.search("echo a text back") == ["echo"]
        await listener.call("add", a=1, b=2)
        assert await listener.search("return the working directory") == ["folder"]
        assert set(await listener.listed()) == {"add", "folder"}
        assert await listener.call("echo", text="still here") == "still here"


@pytest.mark.requirement("M18")
async def test_searches_at_once_are_few_notifications(listening: OpenListener) -> None:
    async with listening() as (listener, gateway):
        gateway.announcer._window = 1.0  # on a busy machine the searches take longer than the usual one
        await listener.listed()
        await at_rest(gateway)
        before = listener.told
        await asyncio.gather(*(listener.search(each.description or "", limit=2) for each in TOOLS))
        await at_rest(gateway)
        assert 1 <= listener.told - before < len(TOOLS) / 2
        assert len(await listener.listed()) > len(TOOLS) / 2


@pytest.mark.requirement("002.compatibility")
async def test_a_client_that_never_lists_is_not_told_for_ever_and_comes_back_when_it_lists(open_door: OpenDoor) -> None:
    """By hand: the SDK's client lists by itself."""
    async with open_door(exposure="dynamic") as (url, host), httpx2.AsyncClient(trust_env=False, timeout=60) as http:
        client = await Raw(http, url).begin()
        for query in ("add two numbers", "echo a text back"):
            await client.search(query, limit=1)
            await at_rest(host.gateway())
        assert len(client.heard) == 2
        assert await client.search("return the working directory", limit=1) == ["folder"], "it answers all the same"
        await at_rest(host.gateway())
        assert len(client.heard) == 2
        assert await client.call("invoke_tool", name="echo", arguments={"text": "x"}) == "x"
        assert set(await client.names()) == {*META, "add", "echo"}, "what it was told of"
        await client.search("return the working directory", limit=1)
        assert len(client.heard) == 3
        assert set(await client.names()) == {*META, "add", "echo", "folder"}


async def test_a_client_that_is_not_known_to_listen_is_told_of_no_search(listening: OpenListener) -> None:
    async with listening(name="claude-ai") as (listener, gateway):
        await listener.listed()
        await at_rest(gateway)
        before = listener.told
        await listener.search("add two numbers")
        await at_rest(gateway)
        assert (listener.told, await listener.listed()) == (before, [])
        tools = (await listener.client.list_tools()).tools
        assert "Call what you find with invoke_tool" in (tools[1].description or "")


@pytest.mark.requirement("002.category")
async def test_a_category_is_enabled_whole(listening: OpenListener, tmp_path: Path) -> None:
    journal = Journal("plain", tmp_path)
    async with listening(scripted(), journal.spec("one", "two"), categories="server") as (listener, gateway):
        await listener.listed()
        await at_rest(gateway)
        before = listener.told
        await listener.ask("list_tool_categories")
        assert await listener.listed() == []
        answer = await listener.ask("list_tool_categories", category="plain")
        await until(lambda: listener.told == before + 1)
        assert answer["tools"] == await listener.listed() == ["one", "two"]


@pytest.mark.requirement("M24")
async def test_what_a_search_enabled_works_by_its_name_and_through_invoke(listening: OpenListener) -> None:
    async with listening() as (listener, _):
        await listener.search("echo a text back")
        assert await listener.listed() == ["echo"]
        assert await listener.call("echo", text="x") == "x"
        assert await listener.call("invoke_tool", name="echo", arguments={"text": "x"}) == "x"
        assert (await listener.ask("describe_tools", names=["echo"]))["tools"][0]["name"] == "echo"


@pytest.mark.requirement("002.always-available")
async def test_always_available_tools_of_the_seeds_variable_are_listed_from_the_start(
    listening: OpenListener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALWAYS_AVAILABLE_TOOLS", "echo,add")
    async with listening() as (listener, _):
        assert await listener.listed() == ["echo", "add"]
        await listener.search("return the working directory")
        assert await listener.listed() == ["echo", "add", "folder"]


@pytest.mark.requirement("002.usage-data")
async def test_what_was_called_often_before_is_always_available_now(listening: OpenListener) -> None:
    statistics = MemoryStatistics()
    async with listening(parts={"statistics": statistics}, push=False) as (listener, _):
        for _ in range(LEAST_CALLS):
            await listener.call("echo", text="x")
        await listener.call("add", a=1, b=2)
        assert await listener.listed() == [], "a list that changes by itself serves nobody"
    async with listening(parts={"statistics": statistics}) as (listener, _):
        assert await listener.listed() == ["echo"]
    async with listening(parts={"statistics": statistics}, often_used=0) as (listener, _):
        assert await listener.listed() == []


async def test_a_client_with_a_cap_has_room_for_so_many_tools_only(listening: OpenListener) -> None:
    config = {"opencode": {"most_tools": 7}}
    async with listening(clients=config, always_available=("echo",)) as (listener, _):
        for each in TOOLS:
            await listener.search(each.description or "", limit=3)
            assert len(await listener.listed()) <= 3
        assert "echo" in await listener.listed()


@pytest.mark.requirement("002.approach-d")
async def test_over_http_the_news_comes_with_the_answer_and_the_sdks_client_follows_it(open_door: OpenDoor) -> None:
    async with open_door(exposure="dynamic") as (url, _), httpx2.AsyncClient(trust_env=False, timeout=60) as http:
        raw = await Raw(http, url).begin()
        answer = await raw.post("tools/call", {"name": "search_tools", "arguments": {"query": "add two numbers"}})
        assert answer.heard == ["notifications/tools/list_changed"]
        listener = Listener(url)
        async with listener.client:
            assert await listener.listed() == []
            await listener.search("echo a text back")
            await until(lambda: listener.told >= 1)
            assert await listener.listed() == ["echo"]
            assert await listener.call("echo", text="over http") == "over http"


@pytest.mark.requirement("M6")
@pytest.mark.requirement("002.accumulation")
async def test_one_sessions_tools_never_show_in_anothers(open_door: OpenDoor) -> None:
    async with open_door(exposure="dynamic") as (url, _):
        one, other = Listener(url), Listener(url)
        async with one.client, other.client:
            await one.search("add two numbers")
            assert await other.listed() == []
            await other.search("echo a text back")
            assert await one.listed() == ["add"]
            assert await other.listed() == ["echo"]
            await until(lambda: one.told >= 1 and other.told >= 1)


async def test_a_change_of_the_board_reaches_sessions_on_their_own_streams(open_door: OpenDoor) -> None:
    async with open_door(exposure="dynamic") as (url, _), httpx2.AsyncClient(trust_env=False, timeout=60) as http:
        clients = [await Raw(http, url, name=name).begin() for name in ("opencode", "claude-ai")]
        async with clients[0].stream() as one, clients[1].stream() as other:
            for client in clients:
                await client.names()
            await clients[0].call("grow", name="wombat", times=3)
            await until(lambda: bool(one) and bool(other))
            assert set(one + other) == {"notifications/tools/list_changed"}
        async with asyncio.timeout(20):
            while await clients[0].search("tell all about wombats", limit=1) != ["wombat"]:
                pass
