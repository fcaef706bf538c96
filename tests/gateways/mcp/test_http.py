"""The HTTP door, on a real socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from mcp import Client

from doors import META, Raw
from pegboard.errors import ConfigError
from pegboard.gateways.mcp.gateway.host import Host
from pegboard.gateways.mcp.transport.http import guard
from servers.scripted import TOOLS
from upstream_specs import scripted

OpenDoor = Callable[..., AbstractAsyncContextManager[tuple[str, Host]]]

EVERYWHERE = "0.0.0.0"  # noqa: S104
WHOLE = [tool.name for tool in TOOLS]
TOOLSETS = {
    "words": {
        "tools": ["scripted/echo", "scripted/add"],
        "rename": {"scripted/echo": "repeat"},
        "preset": {"scripted/add": {"b": 40}},
        "exposure": "eager",
    }
}


@pytest.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(trust_env=False, timeout=60) as client:
        yield client


async def test_only_mcp_its_toolsets_and_the_health_are_there(open_door: OpenDoor, http: httpx2.AsyncClient) -> None:
    async with open_door(toolsets=TOOLSETS) as (url, _):
        for path in ("/", "/other", "/mcpx", "/mcp/nowhere", "/mcp/words/more", "/MCP"):
            answer = await http.post(url.removesuffix("/mcp") + path, json={})
            assert answer.status_code == 404, path
            assert {"error", "message", "remedy"} <= answer.json().keys()
        health = await http.get(url.removesuffix("/mcp") + "/healthz")
        assert (health.status_code, health.json()["status"]) == (200, "ok")
        assert await (await Raw(http, f"{url}/").begin()).names() == META


async def test_an_unknown_toolset_is_answered_with_those_there_are(
    open_door: OpenDoor, http: httpx2.AsyncClient
) -> None:
    async with open_door(toolsets=TOOLSETS) as (url, _):
        answer = await http.post(f"{url}/nowhere", json={})
    assert answer.status_code == 404
    assert "'nowhere'" in answer.json()["message"]
    assert "words" in answer.json()["remedy"]


async def test_an_exposure_there_is_not_is_a_bad_request(open_door: OpenDoor, http: httpx2.AsyncClient) -> None:
    async with open_door() as (url, _):
        for asked in ({"headers": {"x-pegboard-exposure": "lots"}}, {"params": {"exposure": "lots"}}):
            answer = await http.post(url, json={}, **asked)  # type: ignore[arg-type]
            assert answer.status_code == 400
            assert "'lots'" in answer.json()["message"]
            assert "dynamic" in answer.json()["remedy"]


@pytest.mark.requirement("B12")
async def test_white_space_around_the_value_of_a_header_is_no_error(open_door: OpenDoor) -> None:
    """RFC 9110, 5.5: it is not part of the value. By hand: clients' libraries strip it."""
    async with open_door() as (url, _):
        client = Raw(None, url, modern=True)  # type: ignore[arg-type]
        message, headers = client.prepared("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
        body = json.dumps(message).encode()
        spaced = "".join(f"{name}:  \t{value} \t \r\n" for name, value in headers.items())
        where = urlsplit(url)
        head = (
            f"POST {where.path} HTTP/1.1\r\nhost: {where.netloc}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n{spaced}\r\n"
        )
        reader, writer = await asyncio.open_connection(where.hostname, where.port)
        writer.write(head.encode() + body)
        answer = (await reader.read()).decode()
        writer.close()
    assert answer.startswith("HTTP/1.1 200"), answer
    assert '"sum":3' in answer


@pytest.mark.requirement("002.compatibility")
async def test_what_a_client_is_listed_goes_by_its_name_and_by_what_its_address_asks(
    open_door: OpenDoor, http: httpx2.AsyncClient
) -> None:
    cases = [
        ("opencode", "", [*META, "add"]),
        ("opencode", "static", META),
        ("claude-ai", "", META),
        ("claude-ai", "auto", META),
        ("claude-ai", "dynamic", [*META, "add"]),
        ("claude-code", "", [*META, "add"]),
        ("claude-code", "native", WHOLE),
        ("something new", "", META),
        ("something new", "eager", WHOLE),
    ]
    async with open_door(exposure="dynamic") as (url, _):
        for name, wish, listed in cases:
            for headers, query in (({"x-pegboard-exposure": wish}, ""), ({}, f"?exposure={wish}")):
                client = await Raw(http, url + query, name=name, headers=headers).begin()
                assert await client.search("add two numbers", limit=1) == ["add"]
                assert await client.names() == listed, (name, wish)


async def test_a_toolset_serves_only_its_tools_with_their_new_names_and_preset_arguments(
    open_door: OpenDoor, http: httpx2.AsyncClient
) -> None:
    async with open_door(toolsets=TOOLSETS) as (url, _):
        client = await Raw(http, f"{url}/words").begin()
        tools = {tool["name"]: tool for tool in (await client.result("tools/list"))["tools"]}
        assert set(tools) == {"repeat", "add"}
        assert set(tools["add"]["inputSchema"]["properties"]) == {"a"}
        assert await client.call("repeat", text="so") == "so"
        assert await client.call("add", a=2) == "42"
        assert await client.call("add", a=2, b=0) == "42"
        for name in ("odd", "fails"):
            refused = await client.result("tools/call", name=name, arguments={"text": "x"})
            assert refused["isError"], name
        whole = await Raw(http, url).begin()
        assert await whole.call("echo", text="x") == "x"
        assert await whole.call("add", a=2, b=0) == "2"


@pytest.mark.requirement("M6")
async def test_a_session_of_a_toolset_is_none_of_the_whole_board(open_door: OpenDoor, http: httpx2.AsyncClient) -> None:
    async with open_door(toolsets=TOOLSETS) as (url, _):
        client = await Raw(http, f"{url}/words").begin()
        stray = Raw(http, url, session=client.session)
        assert (await stray.post("tools/list", {})).status == 404


async def test_a_page_from_elsewhere_is_refused(open_door: OpenDoor, http: httpx2.AsyncClient) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    async with open_door() as (url, _):
        for header, value, status in (
            ("host", "evil.example:7332", 421),
            ("host", "127.0.0.1.evil.example:7332", 421),
            ("origin", "https://evil.example", 403),
        ):
            elsewhere = {header: value}
            modern = await Raw(http, url, modern=True, headers=elsewhere).post("tools/list", {})
            legacy = await Raw(http, url, headers=elsewhere).post("initialize", hello)
            client = await Raw(http, url).begin()
            client.headers = elsewhere
            stolen = await client.post("tools/list", {})
            assert [modern.status, legacy.status, stolen.status] == [status] * 3, value


async def test_the_health_is_not_for_pages_from_elsewhere(open_door: OpenDoor, http: httpx2.AsyncClient) -> None:
    async with open_door() as (url, _):
        answer = await http.get(url.removesuffix("/mcp") + "/healthz", headers={"host": "evil.example:7332"})
    assert answer.status_code == 421


@pytest.mark.parametrize(
    ("listening", "allowed", "host", "known"),
    [
        ("127.0.0.1", (), "localhost:7332", True),
        ("127.0.0.1", (), "[::1]:7332", True),
        ("::1", (), "[::1]:7332", True),
        ("fd00::1", (), "[fd00::1]:7332", True),
        ("10.0.0.5", (), "10.0.0.5:7332", True),
        ("10.0.0.5", (), "10.0.0.6:7332", False),
        (EVERYWHERE, (), "10.0.0.5:7332", False),
        (EVERYWHERE, ("tools.example:*",), "tools.example:443", True),
        (EVERYWHERE, ("tools.example",), "tools.example", True),
        (EVERYWHERE, ("tools.example",), "tools.example:80", True),
        (EVERYWHERE, ("tools.example",), "tools.example.evil.example", False),
        ("127.0.0.1", (), "localhost", True),
    ],
)
def test_the_door_answers_to_its_own_names_and_those_that_are_configured(
    listening: str, allowed: tuple[str, ...], host: str, known: bool
) -> None:
    hosts = guard(listening, allowed).allowed_hosts
    fits = host in hosts or any(each.endswith(":*") and host.startswith(each[:-1]) for each in hosts)
    assert fits is known


async def test_a_body_beyond_the_limit_is_refused(open_door: OpenDoor, http: httpx2.AsyncClient) -> None:
    async with open_door() as (url, _):
        for session in (None, "never-heard-of"):
            client = Raw(http, url, session=session)
            assert (await client.post("tools/list", {"x": "x" * (5 << 20)})).status == 413


async def test_a_session_nobody_knows_is_not_found(open_door: OpenDoor, http: httpx2.AsyncClient) -> None:
    async with open_door() as (url, _):
        client = Raw(http, url, session="0" * 32)
        assert (await client.post("tools/list", {})).status == 404
        assert (await client.post("tools/list", {})).status == 404


async def test_a_session_that_was_ended_is_gone(open_door: OpenDoor, http: httpx2.AsyncClient) -> None:
    async with open_door() as (url, host):
        client = await Raw(http, url).begin()
        await client.search("add")
        assert client.session is not None
        assert await host.gateway().book.find(client.session) is not None
        assert await client.end() == 200
        assert await host.gateway().book.find(client.session) is None
        assert (await client.post("tools/list", {})).status == 404


@pytest.mark.requirement("M1")
async def test_a_modern_client_without_a_session_is_never_listed_the_whole_board(
    open_door: OpenDoor, http: httpx2.AsyncClient
) -> None:
    async with open_door(exposure="auto", eager_tools=0, eager_tokens=0) as (url, _):
        client = Raw(http, url, modern=True)
        first = await client.result("tools/list")
        await client.search("add two numbers")
        assert [tool["name"] for tool in first["tools"]] == META
        assert await client.result("tools/list") == first
        for headers in ({"x-pegboard-session": "s"}, {"mcp-session-id": "never"}):
            assert await Raw(http, url, modern=True, headers=headers).names() == META


@pytest.mark.requirement("M25")
async def test_no_list_over_http_is_for_shared_caches(open_door: OpenDoor, http: httpx2.AsyncClient) -> None:
    async with open_door() as (url, _):
        answer = await Raw(http, url, modern=True).post("tools/list", {})
    assert answer.message["result"]["cacheScope"] == "private"
    assert "public" not in answer.headers.get("cache-control", "")


@pytest.mark.requirement("M16")
async def test_many_sessions_share_one_server_process(
    open_door: OpenDoor, http: httpx2.AsyncClient, tmp_path: Any
) -> None:
    from journals import Journal

    journal = Journal("plain", tmp_path)
    async with open_door(journal.spec()) as (url, _):
        said = set()
        for name in ("opencode", "claude-ai", "opencode"):
            client = await Raw(http, url, name=name).begin()
            said |= {await client.call("pid"), await client.call("invoke_tool", name="pid")}
        said.add(await Raw(http, url, modern=True).call("pid"))
    assert said == {str(journal.starts[0])}
    assert len(journal.starts) == 1


async def test_the_sdks_client_of_each_era_is_served(open_door: OpenDoor) -> None:
    async with open_door() as (url, _):
        for mode in ("auto", "legacy"):
            async with Client(url, mode=mode) as client:
                result = await client.call_tool("echo", {"text": mode})
                assert result.content[0].text == mode  # type: ignore[union-attr]


async def test_a_client_in_the_configuration_that_nobody_knows_is_said_at_the_start(open_door: OpenDoor) -> None:
    with pytest.raises(ConfigError, match="'mine'"):
        async with open_door(clients={"mine": {"list_changed": True}}):
            raise AssertionError


async def test_a_toolset_that_left_the_configuration_is_not_served_any_more_and_may_come_back(
    open_door: OpenDoor, http: httpx2.AsyncClient
) -> None:
    async with open_door(toolsets=TOOLSETS) as (url, host):
        client = await Raw(http, f"{url}/words").begin()
        before = host.settings
        await host.reconfigure(before.model_copy(update={"toolsets": {}}))
        assert (await client.post("tools/list", {})).status == 404
        others = json.loads(json.dumps(TOOLSETS))
        others["words"]["rename"] = {"scripted/echo": "parrot"}
        again = type(before)(
            **(
                before.model_dump(exclude={"toolsets", "servers", "encoder"})
                | {"toolsets": others, "servers": before.servers}
            )
        )
        await host.reconfigure(again)
        client = await Raw(http, f"{url}/words").begin()
        assert "parrot" in await client.names()
        for options in (before.model_copy(update={"toolsets": {}}), again):
            await host.reconfigure(options)  # nobody asks in between
        assert (await client.post("tools/list", {})).status == 200, "its session goes on"
        assert scripted().name in {status.name for status in host.fleet.status()}
