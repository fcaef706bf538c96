"""Results in the form that the settings and the client want, and those that are read on."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any
from uuid import uuid4

import httpx2
import mcp_types as types
import pytest
from mcp import Client

from doors import META, Raw
from pegboard.errors import StoreError
from pegboard.events import CallRejected, ResultRead, ResultShaped
from pegboard.gateways.access_keys import hashed
from pegboard.gateways.mcp.gateway.host import Host
from pegboard.stores import MemoryEvents, MemoryResults
from pegboard.testing import FakeClock
from services import REDIS, delete_keys, needs_redis
from upstream_specs import python, scripted

OpenClient = Callable[..., AbstractAsyncContextManager[Client]]
OpenDoor = Callable[..., AbstractAsyncContextManager[tuple[str, Host]]]
ROWS = [{"id": at, "name": f"part {at}", "state": "open", "weight": at / 4} for at in range(200)]
TEXT = json.dumps(ROWS)
SESSIONS = int(os.environ.get("TEST_RESULT_SESSIONS", "40"))
ONE_ERA = pytest.mark.parametrize("era", ["auto"], indirect=True)
CUT = {"policy": "handle", "threshold": 50, "budget": 400}
STRUCTURED = """
import anyio, mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
ROWS = [{"id": at, "name": f"part {at}"} for at in range(300)]
SCHEMA = {"type": "object", "properties": {"result": {"type": "array"}}, "required": ["result"]}
async def listed(ctx, params):
    tools = [types.Tool(name=name, description=name, input_schema={"type": "object"}, output_schema=SCHEMA)
             for name in ("parts", "read_file")]
    return types.ListToolsResult(tools=tools)
async def called(ctx, params):
    import json
    text = types.TextContent(type="text", text=json.dumps(ROWS))
    return types.CallToolResult(content=[text], structured_content={"result": ROWS})
async def main():
    server = Server("structured", on_list_tools=listed, on_call_tool=called)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
anyio.run(main)
"""


def text_of(result: types.CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))


def handle_in(text: str) -> str:
    return text.partition('with handle "')[2].partition('"')[0]


@ONE_ERA
@pytest.mark.requirement("results.switch")
async def test_by_default_results_are_handed_on_unchanged(client_of: OpenClient) -> None:
    async with client_of(exposure="eager") as client:
        assert text_of(await client.call_tool("echo", {"text": TEXT})) == TEXT
        assert "read_result" not in [tool.name for tool in (await client.list_tools()).tools]


@pytest.mark.requirement("results.shapes")
@pytest.mark.parametrize("name", ["echo", "invoke_tool"])
async def test_a_result_is_a_table_that_says_the_same(client_of: OpenClient, events: MemoryEvents, name: str) -> None:
    arguments = {"text": TEXT}
    async with client_of(results="shaped", exposure="static") as client:
        given = arguments if name == "echo" else {"name": "echo", "arguments": arguments}
        said = text_of(await client.call_tool(name, given))
        assert [tool.name for tool in (await client.list_tools()).tools] == META

    assert said.startswith("[JSON as tables")
    assert said.endswith("199\tpart 199\t49.75")
    shaped = events.of(ResultShaped)
    assert [(event.tool, event.rules, event.kept) for event in shaped] == [("scripted/echo", ("table",), False)]
    assert shaped[0].tokens_after < shaped[0].tokens_before / 2


async def test_what_is_cut_keeps_the_rows_about_what_the_call_is_for(open_door: OpenDoor) -> None:
    async with open_door(results=CUT) as (url, _), httpx2.AsyncClient() as http:
        client = Raw(http, url, modern=True)
        plain = await client.result("tools/call", name="echo", arguments={"text": TEXT})
        meta = {"pegboard/asked": "What does part 187 weigh?"}
        asked = await client.result("tools/call", name="echo", arguments={"text": TEXT}, _meta=meta)

    assert "part 187\t" not in plain["content"][0]["text"]
    assert "\n187\tpart 187\t46.75\n" in asked["content"][0]["text"]


@pytest.mark.requirement("results.handles")
@ONE_ERA
@pytest.mark.parametrize("exposure", ["static", "eager", "route"])
async def test_what_is_cut_can_be_read_on(client_of: OpenClient, events: MemoryEvents, exposure: str) -> None:
    async with client_of(results=CUT, exposure=exposure) as client:
        assert "read_result" in [tool.name for tool in (await client.list_tools()).tools]
        said = text_of(await client.call_tool("echo", {"text": TEXT}))
        again = text_of(await client.call_tool("echo", {"text": TEXT}))
        handle = handle_in(said)
        row = text_of(await client.call_tool("read_result", {"handle": handle, "grep": "part 187\t"}))
        value = text_of(await client.call_tool("read_result", {"handle": handle, "path": "[?id==`187`].weight | [0]"}))
        wrong = await client.call_tool("read_result", {"handle": handle, "lines": "0"})
        unknown = await client.call_tool("read_result", {"handle": "r0"})

    assert said == again
    assert "part 187\t" not in said
    assert row.endswith(": 187\tpart 187\t46.75")
    assert value == "46.75"
    assert (json.loads(text_of(wrong))["error"], json.loads(text_of(unknown))["error"]) == (
        "arguments_invalid",
        "result_not_kept",
    )
    assert [event.tool for event in events.of(ResultRead)] == ["scripted/echo"] * 2
    assert [event.reason for event in events.of(CallRejected)] == [
        "arguments_invalid",
        "result_not_kept",
    ]


@ONE_ERA
@pytest.mark.requirement("results.structured")
async def test_structured_content_stays_for_a_client_that_may_check_it(client_of: OpenClient) -> None:
    async with client_of(python("made", STRUCTURED), results=CUT, exposure="eager") as client:
        await client.list_tools()
        listed = await client.call_tool("parts", {})
        through = await client.call_tool("invoke_tool", {"name": "parts"})
        file = await client.call_tool("read_file", {})

    assert len((listed.structured_content or {})["result"]) == 300
    assert "read_result" in text_of(listed)
    assert through.structured_content is None
    assert text_of(through) == text_of(listed)
    assert len(json.loads(text_of(file))) == 300  # reads of files stay whole


@ONE_ERA
@pytest.mark.requirement("results.switch")
async def test_patterns_choose_the_form_of_each_tool(client_of: OpenClient) -> None:
    forms = {
        "policy": "shaped",
        "threshold": 50,
        "budget": 400,
        "tools": {"made/read_file": "handle", "scripted/*": "whole"},
    }
    async with client_of(python("made", STRUCTURED), scripted(), results=forms, exposure="eager") as client:
        assert text_of(await client.call_tool("echo", {"text": TEXT})) == TEXT
        assert text_of(await client.call_tool("parts", {})).count("\n") == 302
        assert handle_in(text_of(await client.call_tool("read_file", {})))


@pytest.mark.requirement("results.switch")
@pytest.mark.parametrize("modern", [False, True], ids=["handshake", "2026-07-28"])
async def test_a_client_turns_it_off_or_on_by_header_or_in_a_request(open_door: OpenDoor, *, modern: bool) -> None:
    async with (
        open_door(results=CUT) as (url, _),
        httpx2.AsyncClient(trust_env=False, timeout=60) as http,
    ):

        async def said(wish: str = "", **meta: Any) -> str:
            client = Raw(http, url, modern=modern, headers={"x-pegboard-results": wish} if wish else {})
            if not modern:
                await client.begin()
            answer = await client.result("tools/call", name="echo", arguments={"text": TEXT}, _meta=meta)
            return str(answer["content"][0]["text"])

        assert handle_in(await said())
        assert await said("whole") == TEXT
        assert (await said("shaped")).endswith("199\tpart 199\t49.75")
        assert await said(**{"pegboard/results": "whole"}) == TEXT
        assert json.loads(await said(**{"pegboard/results": "none"}))["error"] == "config_error"
        refused = await Raw(http, url, modern=modern, headers={"x-pegboard-results": "none"}).post("tools/list", {})
        assert refused.status == 400


@pytest.mark.requirement("results.handles")
async def test_a_handle_is_its_callers_and_survives_a_restart(open_door: OpenDoor) -> None:
    access = {name: {"hash": hashed(name)} for name in ("ann", "bob")}
    async with httpx2.AsyncClient(trust_env=False, timeout=60) as http:

        async def client(url: str, name: str) -> Raw:
            return await Raw(http, url, headers={"authorization": f"Bearer {name}"}).begin()

        async with open_door(results=CUT, access=access) as (url, _):
            handle = handle_in(await (await client(url, "ann")).call("echo", text=TEXT))
        async with open_door(results=CUT, access=access) as (url, _):
            ann, bob = await client(url, "ann"), await client(url, "bob")
            assert (await ann.call("read_result", handle=handle, lines="4")) == "0\tpart 0\t0.0"
            assert (await bob.ask("read_result", handle=handle))["error"] == "result_not_kept"


@needs_redis
@pytest.mark.requirement("results.handles")
async def test_of_many_sessions_on_two_replicas_none_reads_anothers_and_none_loses_its_own(open_door: OpenDoor) -> None:
    state = {"url": REDIS, "prefix": f"test_{uuid4().hex}", "timeout": 30}
    options: dict[str, Any] = {"results": CUT | {"budget": 200}, "state": state, "allowed_hosts": ("127.0.0.1",)}
    try:
        async with AsyncExitStack() as stack:
            http = await stack.enter_async_context(
                httpx2.AsyncClient(trust_env=False, timeout=60, limits=httpx2.Limits(max_connections=20))
            )
            doors = [await stack.enter_async_context(open_door(host="0.0.0.0", **options)) for _ in range(2)]  # noqa: S104
            urls = [url for url, _ in doors]
            clients = [await Raw(http, urls[at % 2]).begin() for at in range(SESSIONS)]
            texts = [
                json.dumps([{"id": row, "of": f"client {at} {row}"} for row in range(60)]) for at in range(SESSIONS)
            ]
            handles: list[str] = []
            for at in range(0, SESSIONS, 20):
                calls = [clients[each].call("echo", text=texts[each]) for each in range(at, at + 20)]
                handles += map(handle_in, await asyncio.gather(*calls))
            other = [Raw(http, urls[1 - at % 2], session=client.session) for at, client in enumerate(clients)]
            for at in range(0, SESSIONS, 5):
                own = await other[at].call("read_result", handle=handles[at], path="[7].of")
                assert own == f'"client {at} 7"'
                theirs = await other[at].ask("read_result", handle=handles[(at + 1) % SESSIONS])
                assert theirs["error"] == "result_not_kept"
        assert len(set(handles)) == SESSIONS
    finally:
        await delete_keys(state["prefix"])


class Down(MemoryResults):
    async def put(self, *args: Any, **more: Any) -> bool:
        raise StoreError("The store is down.")


@ONE_ERA
async def test_without_a_store_nothing_is_left_out(client_of: OpenClient, clock: FakeClock) -> None:
    async with client_of(results=CUT, parts={"results": Down(clock)}) as client:
        said = text_of(await client.call_tool("echo", {"text": TEXT}))

    assert said.endswith("199\tpart 199\t49.75")


@ONE_ERA
@pytest.mark.requirement("results.learnt")
async def test_a_tool_whose_results_are_read_again_in_full_is_left_whole(client_of: OpenClient) -> None:
    large = json.dumps([{"id": at, "name": f"part {at}"} for at in range(2_000)])
    async with client_of(results=CUT, exposure="static") as client:
        handle = handle_in(text_of(await client.call_tool("echo", {"text": large})))
        page = 1
        while not (await client.call_tool("read_result", {"handle": handle, "page": page})).is_error:
            page += 1
        whole = text_of(await client.call_tool("echo", {"text": large}))

    assert handle_in(whole) == ""
    assert whole.endswith("1999\tpart 1999")
