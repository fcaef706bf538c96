"""Programs through the gateway: offered or not, and each call as if it were made alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import httpx2
import mcp_types as types
import pytest
from mcp import Client

from doors import Raw
from pegboard.errors import ConfigError
from pegboard.events import CallFinished, CallRejected, ProgramFinished, ToolsListed
from pegboard.gateways.access_keys import hashed
from pegboard.gateways.mcp.gateway.host import Host
from pegboard.gateways.mcp.gateway.program_calls import bound
from pegboard.programs import runner
from pegboard.programs.result_values import CallFailed
from pegboard.settings.sections import RuleSettings
from pegboard.settings.storage import SpendSettings
from pegboard.stores import MemoryEvents
from pegboard.testing import fake_tool
from upstream_specs import python

OpenClient = Callable[..., AbstractAsyncContextManager[Client]]
OpenDoor = Callable[..., AbstractAsyncContextManager[tuple[str, Host]]]
ONE_ERA = pytest.mark.parametrize("era", ["auto"], indirect=True)
SUMS = "found = [await add(a=at, b=1) for at in range(3)]\nprint(found)"
MANY = """
import anyio, mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
LONG = "Handles one of the many matters of the office, with care, in the order in which they came. " * 4
TOOLS = [types.Tool(name=f"matter_{at}", description=LONG, input_schema={"type": "object"}) for at in range(%d)]
async def listed(ctx, params):
    return types.ListToolsResult(tools=TOOLS)
async def main():
    server = Server("many", on_list_tools=listed)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
anyio.run(main)
"""


def text_of(result: types.CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))


async def listed(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


async def run(client: Client, program: str) -> types.CallToolResult:
    return await client.call_tool("run_program", {"program": program})


@pytest.mark.requirement("programs.switch")
@ONE_ERA
@pytest.mark.parametrize("exposure", ["static", "eager", "route"])
async def test_programs_are_listed_and_run_only_where_they_are_switched_on(
    client_of: OpenClient, exposure: str
) -> None:
    async with client_of(exposure=exposure) as client:
        assert "run_program" not in await listed(client)
        refused = await run(client, "1")
    async with client_of(exposure=exposure, programs="on") as client:
        assert "run_program" in await listed(client)
        done = await run(client, "print(await echo(text='hello'))")

    assert json.loads(text_of(refused))["error"] == "tool_not_available"
    assert (text_of(done), done.is_error) == ("hello", False)


@pytest.mark.requirement("programs.break_even")
@ONE_ERA
@pytest.mark.parametrize(("tools", "why"), [(10, "small board"), (60, "pays")])
async def test_auto_offers_programs_by_the_size_of_the_board_and_says_why(
    client_of: OpenClient, events: MemoryEvents, tools: int, why: str
) -> None:
    async with client_of(python("many", MANY % tools), programs="auto", exposure="auto") as client:
        assert ("run_program" in await listed(client)) == (why == "pays")

    assert [event.programs for event in events.of(ToolsListed)] == [why]


@ONE_ERA
async def test_a_client_with_a_limit_on_tools_is_offered_none_under_auto(client_of: OpenClient) -> None:
    few = {"opencode": {"matches": ["*"], "most_tools": 40}}
    async with client_of(python("many", MANY % 60), programs="auto", clients=few) as client:
        assert "run_program" not in await listed(client)


@pytest.mark.requirement("programs.stubs")
@ONE_ERA
async def test_a_search_shows_the_functions_that_a_program_calls(client_of: OpenClient) -> None:
    async with client_of(programs="on") as client:
        answer = json.loads(text_of(await client.call_tool("search_tools", {"query": "add two numbers"})))

    shown = {each["name"]: each["signature"] for each in answer["tools"]}
    assert shown["add"] == "async def add(a: float, b: float)"


def test_arguments_by_place_are_those_that_python_can_name() -> None:
    names = {"from": {"type": "string"}, "to": {"type": "string"}, "amount": {"type": "number"}}
    tool = fake_tool("send", schema={"properties": names, "required": [*names]})

    assert bound(tool, ["bob", 5], {"from": "ann"}) == {"from": "ann", "to": "bob", "amount": 5}
    with pytest.raises(CallFailed, match="takes 2 arguments, and 3 were given"):
        bound(tool, ["ann", "bob", 5], {})


@pytest.mark.requirement("programs.gates")
async def test_a_program_calls_as_its_client_would_and_only_what_it_prints_comes_back(
    client_of: OpenClient, events: MemoryEvents
) -> None:
    seen: list[tuple[float, str | None]] = []

    async def note(progress: float, _total: float | None, message: str | None) -> None:
        seen.append((progress, message))

    async with client_of(programs="on", results="shaped") as client:
        done = await client.call_tool("run_program", {"program": SUMS}, progress_callback=note)

    assert text_of(done) == "['1', '2', '3']"
    assert seen == [(1, "line 1: add"), (2, "line 1: add"), (3, "line 1: add")]
    assert [event.tool for event in events.of(CallFinished)] == ["scripted/add"] * 3
    (finished,) = events.of(ProgramFinished)
    assert (finished.outcome, finished.calls, finished.failed) == ("ok", 3, 0)
    assert (done.meta or {})["pegboard/program"]["calls"] == 3


@pytest.mark.requirement("programs.gates")
@ONE_ERA
async def test_errors_of_servers_and_of_pegboard_are_raised_in_the_program(
    client_of: OpenClient, events: MemoryEvents
) -> None:
    program = """
import json
number = json.loads("3")
for name in ("fails", "raises", "echo"):
    try:
        await (fails() if name == "fails" else raises() if name == "raises" else echo(text=number))
    except RuntimeError as error:
        print(error)
"""
    async with client_of(programs="on") as client:
        said = text_of(await run(client, program)).splitlines()

    assert said[:2] == ["fails: it is broken", "raises: custom protocol error"]
    assert said[2].startswith("echo: The arguments of 'echo' do not match its schema")
    assert [event.reason for event in events.of(CallRejected)] == ["arguments_invalid"]


@pytest.mark.requirement("programs.gates")
@ONE_ERA
async def test_what_the_caller_may_not_use_its_program_may_not_call(
    client_of: OpenClient, events: MemoryEvents
) -> None:
    rules = (RuleSettings(tools="scripted/add", scope="sums"),)
    async with client_of(programs="on", rules=rules) as client:
        refused = await run(client, "print(await echo(text='x'))\nawait add(a=1, b=2)")
        hidden = await run(client, "f = add\nprint(f)")
    async with client_of(programs="on", rules=rules, scopes=("sums",)) as client:
        allowed = await run(client, "await add(a=1, b=2)")

    assert refused.is_error
    assert "`add`" in text_of(refused)
    assert hidden.is_error
    assert not allowed.is_error
    assert [event.tool for event in events.of(CallFinished)] == ["scripted/add"]


@pytest.mark.requirement("programs.gates")
@ONE_ERA
async def test_a_program_cannot_spend_or_call_more_than_its_caller(client_of: OpenClient) -> None:
    spend = SpendSettings(prices={"scripted/*": 1.0}, session=2)
    program = "for at in range(5):\n    print(await echo(text=str(at)))"
    async with client_of(programs="on", spend=spend) as client:
        dear = text_of(await run(client, program))
    async with client_of(programs="on", rates=({"tools": ("scripted/*",), "calls": 3, "seconds": 3600},)) as client:
        often = text_of(await run(client, program))

    assert dear.splitlines()[:2] == ["0", "1"]
    assert "$2 per session" in dear
    assert "line 2: echo succeeded (2 times)" in dear
    assert often.splitlines()[:3] == ["0", "1", "2"]


@pytest.mark.requirement("programs.gates")
@ONE_ERA
async def test_meta_tools_are_no_functions(client_of: OpenClient) -> None:
    async with client_of(programs="on") as client:
        for program in (
            "await run_program(program='1')",
            "await invoke_tool(name='echo')",
            "await search_tools(query='x')",
        ):
            done = await run(client, program)
            assert done.is_error
            assert "not defined" in text_of(done) or "not exist" in text_of(done)


@pytest.mark.requirement("programs.gates")
async def test_each_token_runs_programs_with_its_own_rights(open_door: OpenDoor) -> None:
    access = {"one": {"hash": hashed("key-of-one"), "tools": ["*/echo"]}, "all": {"hash": hashed("key-of-all")}}
    async with open_door(access=access, programs="on") as (url, _), httpx2.AsyncClient(timeout=60) as http:
        said = {}
        for key in ("one", "all"):
            client = Raw(http, url, headers={"authorization": f"Bearer key-of-{key}"})
            await client.begin()
            said[key] = await client.call("run_program", program="print(await add(a=1, b=2))")

    assert "`add`" in said["one"]
    assert said["all"].startswith("3")


@pytest.mark.requirement("programs.killed")
async def test_the_gateway_answers_while_a_hostile_program_runs(open_door: OpenDoor) -> None:
    hostile = {"mode": "on", "seconds": 2.0}
    async with open_door(programs=hostile) as (url, _), httpx2.AsyncClient(timeout=60) as http:
        client = await Raw(http, url).begin()
        running = asyncio.create_task(client.call("run_program", program="while True: [at for at in range(10000)]"))
        answers = []
        while not running.done():
            answers.append((await http.get(url.removesuffix("/mcp") + "/healthz")).status_code)
        said = await running

    assert "time limit" in said
    assert len(answers) > 3
    assert set(answers) == {200}


async def test_a_configuration_with_programs_needs_their_sandbox(
    open_door: OpenDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "find_spec", lambda name: None)

    with pytest.raises(ConfigError, match=r"pegboard\[programs\]"):
        async with open_door(programs="auto"):
            raise AssertionError
