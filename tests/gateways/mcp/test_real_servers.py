"""`pegboard mcp` as a client starts it, before real servers from PyPI and npm.

The servers are installed by `python scripts/install_servers.py` (CI and `make demo` do); without them these tests skip.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from pydantic import TypeAdapter

from local_page import web_page
from pegboard.catalog import BpeCounter, compact_json
from processes import alive, descendants, eventually, until

ROOT = Path(__file__).parents[3]
CONFIG = ROOT / ".demo" / "mcp.json"
REPOSITORY = str(ROOT / ".demo" / "repository")
ANY: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])

pytestmark = [pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc"), pytest.mark.timeout(600)]

CALLS: list[tuple[str, str, dict[str, Any], str]] = [
    (
        "time",
        "convert_time",
        {"source_timezone": "America/New_York", "time": "16:30", "target_timezone": "Europe/Oslo"},
        "convert a time between timezones",
    ),
    ("time", "get_current_time", {"timezone": "Nowhere/Land"}, "what time is it"),
    ("git", "git_log", {"repo_path": REPOSITORY}, "show the commit history"),
    ("git", "git_status", {"repo_path": REPOSITORY}, "status of the working tree"),
    ("git", "git_show", {"repo_path": REPOSITORY, "revision": "no-such-revision"}, "show the contents of a commit"),
    ("fetch", "fetch", {"url": "PAGE"}, "fetch a URL and extract its contents"),
    ("everything", "echo", {"message": "hällo 世界 🪝"}, "echo a message back"),
    ("everything", "get-sum", {"a": 1, "b": 2.5}, "sum of two numbers"),
    ("everything", "get-tiny-image", {}, "a tiny image"),
    ("everything", "get-structured-content", {"location": "Chicago"}, "structured weather content"),
    ("everything", "get-resource-links", {"count": 2}, "resource links"),
    ("everything", "get-annotated-message", {"messageType": "error", "includeImage": True}, "annotated message"),
    ("filesystem", "list_directory", {"path": REPOSITORY}, "list the files of a directory"),
    ("filesystem", "read_text_file", {"path": f"{REPOSITORY}/notes.txt"}, "read a text file"),
    ("filesystem", "read_text_file", {"path": "/etc/passwd"}, "read a text file"),
    ("memory", "read_graph", {}, "read the knowledge graph"),
]


@pytest.fixture(scope="module")
def servers() -> dict[str, Any]:
    if not CONFIG.exists():
        if os.environ.get("CI"):
            pytest.fail("CI installs the servers with scripts/install_servers.py")
        pytest.skip("install the servers with: python scripts/install_servers.py")
    return dict(json.loads(CONFIG.read_text())["mcpServers"])


@pytest.fixture(scope="module")
def page() -> Iterator[str]:
    with web_page() as url:
        yield url


@asynccontextmanager
async def gateway(config: Path, mode: str, cache: Path) -> AsyncIterator[Client]:
    environment = os.environ | {"PEGBOARD_CACHE_DIR": str(cache), "PEGBOARD_START_WAIT": "30"}
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "pegboard", "mcp", "--config", str(config)], env=environment
    )
    async with Client(command, mode=mode, cache=None) as client:
        yield client


@asynccontextmanager
async def direct(entry: dict[str, Any]) -> AsyncIterator[Client]:
    parameters = StdioServerParameters(
        command=entry["command"], args=entry["args"], env=os.environ | entry.get("env", {}), cwd=entry["cwd"]
    )
    async with Client(parameters, cache=None) as client:
        yield client


async def raw(client: Client, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The result on the wire, without the field that only one of the two eras has."""
    request = types.CallToolRequest(params=types.CallToolRequestParams(name=name, arguments=arguments))
    result = await client.session.send_request(request, ANY)  # type: ignore[type-var]
    return {key: value for key, value in result.items() if key != "resultType"}


async def listed(client: Client) -> list[dict[str, Any]]:
    result = await client.session.send_request(types.ListToolsRequest(), ANY)  # type: ignore[type-var]
    return list(result["tools"])


async def ask(client: Client, name: str, /, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(name, arguments)
    return dict(json.loads(result.content[0].text))  # type: ignore[union-attr]


LISTED: dict[str, list[dict[str, Any]]] = {}
ANSWERED: dict[tuple[str, str], dict[str, Any]] = {}


async def asked_directly(servers: dict[str, Any], page: str) -> None:
    """Fill LISTED with what each server lists, and ANSWERED with what it answers by itself: once for all tests."""
    for server, entry in servers.items():
        if server in LISTED:
            continue
        async with direct(entry) as client:
            for _, name, arguments, _ in (call for call in calls_of(servers, page) if call[0] == server):
                ANSWERED[name, str(arguments)] = await raw(client, name, arguments)
            LISTED[server] = await listed(client)


def calls_of(servers: dict[str, Any], page: str) -> list[tuple[str, str, dict[str, Any], str]]:
    """The calls of servers that are installed here."""
    return [
        (server, name, {key: page if value == "PAGE" else value for key, value in arguments.items()}, query)
        for server, name, arguments, query in CALLS
        if server in servers
    ]


@pytest.mark.requirement("M7")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_search_describe_invoke_and_direct_call_on_real_servers_equal_the_servers_own_answers(
    servers: dict[str, Any], page: str, tmp_path: Path, mode: str
) -> None:
    await asked_directly(servers, page)
    calls = calls_of(servers, page)
    definitions = {tool["name"]: tool for server, *_ in calls for tool in LISTED[server]}
    async with gateway(CONFIG, mode, tmp_path) as client:
        for _, name, arguments, query in calls:
            found = await ask(client, "search_tools", query=query)
            assert name in [tool["name"] for tool in found["tools"]], (query, found)
            assert (await ask(client, "describe_tools", names=[name]))["tools"] == [definitions[name]]
            invoked = await raw(client, "invoke_tool", {"name": name, "arguments": arguments})
            called = await raw(client, name, arguments)
            assert invoked == called == ANSWERED[name, str(arguments)], name


async def test_a_client_is_listed_a_fraction_of_the_tokens(servers: dict[str, Any], page: str, tmp_path: Path) -> None:
    await asked_directly(servers, page)
    before = sum(sum(BpeCounter().count([compact_json(tool) for tool in tools])) for tools in LISTED.values())
    async with gateway(CONFIG, "auto", tmp_path) as client:
        tools = await listed(client)
    after = sum(BpeCounter().count([compact_json(tool) for tool in tools]))
    if len(servers) > 3:
        assert len(tools) == 4
        assert after < 0.45 * before, "the pool is most of it: a line a tool fits its budget here"
    else:
        assert after < before


@pytest.mark.requirement("M13")
async def test_a_real_server_killed_in_mid_call_fails_that_call_only_and_comes_back(
    servers: dict[str, Any], tmp_path: Path
) -> None:
    if "everything" not in servers:
        pytest.skip("needs server-everything from npm")
    async with gateway(CONFIG, "auto", tmp_path) as client:
        await ask(client, "list_tool_categories")
        call = asyncio.create_task(client.call_tool("trigger-long-running-operation", {"duration": 60, "steps": 60}))
        await until(lambda: bool(_server("everything")))
        await client.call_tool("echo", {"message": "the long call is under way by now"})
        os.kill(_server("everything")[-1], signal.SIGKILL)
        result = await call
        assert result.is_error
        assert "closed the connection during the call" in result.content[0].text  # type: ignore[union-attr]
        assert not (await client.call_tool("convert_time", CALLS[0][2])).is_error
        for _ in range(100):
            back = await client.call_tool("echo", {"message": "back"})
            if not back.is_error:
                break
            await asyncio.sleep(0.1)
        assert not back.is_error


@pytest.mark.requirement("M13")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_server_outlives_a_killed_gateway(servers: dict[str, Any], tmp_path: Path, number: signal.Signals) -> None:
    import subprocess

    command = [sys.executable, "-m", "pegboard", "mcp", "--config", str(CONFIG)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert eventually(lambda: len(descendants(process.pid)) >= 2 * len(servers))
        family = descendants(process.pid)
        process.send_signal(number)
        process.wait(60)
        assert eventually(lambda: not any(map(alive, family)))


async def test_no_server_outlives_a_gateway_whose_client_hangs_up(servers: dict[str, Any], tmp_path: Path) -> None:
    others = set(descendants(os.getpid()))  # what earlier tests share, such as a server of a session's fixture
    async with gateway(CONFIG, "auto", tmp_path) as client:
        await ask(client, "list_tool_categories")
        family = set(descendants(os.getpid())) - others
        assert len(family) > len(servers)
    assert eventually(lambda: not any(map(alive, family)))


def _server(name: str) -> list[int]:
    """Processes of this test that run the named npm server."""
    return [
        pid
        for pid in descendants(os.getpid())
        if f"mcp-server-{name}" in _command(pid) and "reaper" not in _command(pid)
    ]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""
