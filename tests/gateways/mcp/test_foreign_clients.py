"""Foreign clients before real servers, through the gateway and directly: over stdio and HTTP, they see the same.

Clients are installed by `scripts/install_clients.py`, servers by `scripts/install_servers.py` (CI does both).
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from drivers import DRIVERS, Driver, Step, Target
from local_page import web_page
from pegboard_bench.ports import free_port
from processes import eventually
from servers_at_hand import get

ROOT = Path(__file__).parents[3]
CONFIG = ROOT / ".demo" / "mcp.json"
SERVERS = ("git", "time", "fetch", "everything")
META_TOOLS = ["list_tool_categories", "search_tools", "describe_tools", "invoke_tool"]
LIST_CHANGED = "notifications/tools/list_changed"
ENVIRONMENT = {"PEGBOARD_START_WAIT": "60", "PEGBOARD_EXPOSURE": "static", "PEGBOARD_OFTEN_USED": "0"}

pytestmark = [pytest.mark.skipif(sys.platform != "linux", reason="Linux only, as is CI"), pytest.mark.timeout(600)]

REPOSITORY = str(ROOT / ".demo" / "repository")
CALLS: list[tuple[str, str, dict[str, Any], str]] = [
    (
        "time",
        "convert_time",
        {"source_timezone": "America/New_York", "time": "16:30", "target_timezone": "Europe/Oslo"},
        "convert a time between timezones",
    ),
    ("time", "convert_time", {"source_timezone": "Nowhere/Land", "time": "1", "target_timezone": "UTC"}, "timezones"),
    ("git", "git_log", {"repo_path": REPOSITORY}, "show the commit history"),
    ("fetch", "fetch", {"url": "PAGE"}, "fetch a URL and extract its contents"),
    ("everything", "echo", {"message": "hällo 世界 🪝"}, "echo a message back"),
    ("everything", "get-structured-content", {"location": "Chicago"}, "structured weather content"),
    ("everything", "get-annotated-message", {"messageType": "error", "includeImage": True}, "annotated message"),
]


def present(path: Path, script: str) -> None:
    if not path.exists():
        if os.environ.get("CI"):
            pytest.fail(f"CI installs it with scripts/{script}")
        pytest.skip(f"install it with: python scripts/{script}")


@pytest.fixture(scope="module")
def servers() -> dict[str, Any]:
    present(CONFIG, "install_servers.py")
    found = json.loads(CONFIG.read_text())["mcpServers"]
    return {name: found[name] for name in SERVERS if name in found}


@pytest.fixture(scope="module")
def config(servers: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("foreign") / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


@pytest.fixture(scope="module")
def calls(servers: dict[str, Any]) -> Iterator[list[tuple[str, str, dict[str, Any], str]]]:
    with web_page() as url:
        yield [
            (server, name, {key: url if value == "PAGE" else value for key, value in arguments.items()}, query)
            for server, name, arguments, query in CALLS
            if server in servers
        ]


@pytest.fixture
def driver(request: pytest.FixtureRequest) -> Driver:
    found: Driver = request.param
    present(found.needs, "install_clients.py")
    return found


def each(drivers: Sequence[Driver]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("driver", drivers, ids=lambda driver: driver.name, indirect=True)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = str(tmp_path_factory.mktemp("state"))
    return {**os.environ, **ENVIRONMENT, "PEGBOARD_CACHE_DIR": folder, "PEGBOARD_STATE_DIR": folder}


@pytest.fixture(scope="module")
def url(config: Path, environment: dict[str, str]) -> Iterator[str]:
    with served(config, environment) as found:
        yield found


@contextmanager
def served(config: Path, environment: dict[str, str]) -> Iterator[str]:
    """The address of a `pegboard serve` of its own."""
    port = free_port()
    command = [sys.executable, "-m", "pegboard", "serve", "--config", str(config), "--port", str(port)]
    with subprocess.Popen([*command, "--host", "127.0.0.1"], env=environment) as process:
        try:
            assert eventually(lambda: get(f"http://127.0.0.1:{port}/healthz") == 200)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()


@pytest.fixture(params=["stdio", "http"])
def target(request: pytest.FixtureRequest, config: Path, environment: dict[str, str]) -> Target:
    if request.param == "http":
        return Target(url=request.getfixturevalue("url"))
    return Target(command=str(program(config)), env=environment)


def program(config: Path) -> Path:
    """The gateway as a command without arguments: the inspector would take `--config` for itself."""
    path = config.with_name("gateway")
    if not path.exists():
        command = [sys.executable, "-m", "pegboard", "mcp", "--no-attach", "--config", str(config)]
        path.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        path.chmod(0o755)
    return path


DIRECT: dict[tuple[str, str], list[Any]] = {}


async def direct(driver: Driver, server: str, entry: dict[str, Any], steps: list[Step]) -> list[Any]:
    """What the client is given by the server itself; asked once, for both transports of the gateway."""
    key = driver.name, server
    if key not in DIRECT:
        env = {**os.environ, **entry.get("env", {})}
        target = Target(command=entry["command"], args=entry["args"], env=env, cwd=entry["cwd"])
        DIRECT[key] = await driver.run(target, steps)
    return DIRECT[key]


@each(DRIVERS)
@pytest.mark.requirement("M7")
async def test_what_a_client_lists_finds_and_calls_through_the_gateway_equals_what_the_servers_answer_it(
    driver: Driver,
    target: Target,
    servers: dict[str, Any],
    calls: list[tuple[str, str, dict[str, Any], str]],
) -> None:
    if not driver.sessions:
        calls = [calls[0], calls[-1]]
    definitions: dict[str, Any] = {}
    expected: list[Any] = []
    for server, entry in servers.items():
        own = [("call", name, arguments) for of, name, arguments, _ in calls if of == server]
        tools, *results = await direct(driver, server, entry, [("list",), *own])
        definitions |= {tool["name"]: tool for tool in listed(tools)}
        expected += results
    ordered = [call for server in servers for call in calls if call[0] == server]
    names = list(dict.fromkeys(name for _, name, _, _ in ordered))
    steps: list[Step] = [("list",), ("call", "list_tool_categories", {})]
    steps += [("call", "search_tools", {"query": query}) for *_, query in ordered]
    steps += [("call", "describe_tools", {"names": names})]
    steps += [("call", "invoke_tool", {"name": name, "arguments": given}) for _, name, given, _ in ordered]
    steps += [("call", name, arguments) for _, name, arguments, _ in ordered]

    tools, categories, *rest = await driver.run(target, steps)
    searches, described, invoked, called = split(rest, len(ordered))

    assert [tool["name"] for tool in listed(tools)] == META_TOOLS
    assert {each["category"] for each in said(categories)["categories"]} == set(servers)
    for (_, name, _, query), found in zip(ordered, searches, strict=True):
        assert name in [tool["name"] for tool in said(found)["tools"]], query
    assert said(described)["tools"] == [definitions[name] for name in names]
    assert without_era(invoked) == without_era(called) == without_era(expected)


@each([driver for driver in DRIVERS if driver.tellable])
@pytest.mark.requirement("002.approach-d")
async def test_a_client_that_is_told_of_found_tools_lists_them(driver: Driver, target: Target) -> None:
    before, found, _, after, called = await driver.run(
        as_dynamic(target),
        [
            ("list",),
            ("call", "search_tools", {"query": "convert a time between timezones"}),
            ("await", LIST_CHANGED),
            ("list",),
            ("call", *CALLS[0][1:3]),
        ],
    )

    names = [tool["name"] for tool in before]
    assert "convert_time" not in names
    assert "convert_time" in [tool["name"] for tool in said(found)["tools"]]
    assert "convert_time" in [tool["name"] for tool in after]
    assert {tool["name"] for tool in after} > set(names)
    assert not called.get("isError")


def as_dynamic(target: Target) -> Target:
    if target.url:
        return replace(target, url=f"{target.url}?exposure=dynamic")
    return replace(target, args=("--exposure", "dynamic"))


def listed(answer: Any) -> list[Any]:
    """The tools: the inspector shows the whole result."""
    return list(answer["tools"] if isinstance(answer, dict) else answer)


def said(result: dict[str, Any]) -> dict[str, Any]:
    return dict(json.loads(result["content"][0]["text"]))


def split(results: list[Any], number: int) -> tuple[list[Any], Any, list[Any], list[Any]]:
    searches, (described, *more) = results[:number], results[number:]
    return searches, described, more[:number], more[number:]


def without_era(results: list[Any]) -> list[Any]:
    """Without what only one era's envelope has, and where success goes without saying."""
    return [
        {key: value for key, value in (result | _meta(result)).items() if key != "resultType" and value}
        for result in results
    ]


def _meta(result: dict[str, Any]) -> dict[str, Any]:
    """The protocol's own `_meta` keys belong to a hop."""
    kept = {key: of for key, of in result.get("_meta", {}).items() if not key.startswith("io.modelcontextprotocol/")}
    return {"_meta": kept}
