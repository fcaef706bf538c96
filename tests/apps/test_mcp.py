from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from mcp import Client, StdioServerParameters
from typer.testing import Result

from pegboard import Settings
from pegboard.apps.cli import consent
from pegboard.gateways.mcp.attach.serve_discovery import running_folder
from pegboard.gateways.mcp.transport.config_reload import Source
from pegboard.settings.client_files import own_file
from servers.scripted import TOOLS
from serves import Serve
from upstream_specs import SCRIPTED

Run = Callable[..., Result]
Start = Callable[..., "subprocess.Popen[bytes]"]

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}


def talk(process: subprocess.Popen[bytes]) -> tuple[list[Any], str]:
    """What the gateway answers to a client that asks for its tools, and what it said on stderr."""
    assert process.stdin is not None
    assert process.stdout is not None
    answers = []
    for message in (HELLO, READY, LIST):
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        if "id" in message:
            answers.append(json.loads(process.stdout.readline()))
    rest, stderr = process.communicate(timeout=60)
    assert rest == b""
    return answers, stderr.decode()


def names(answer: Any) -> set[str]:
    return {tool["name"] for tool in answer["result"]["tools"]}


def test_the_gateway_serves_on_stdout_logs_on_stderr_and_heeds_its_flags(
    start: Start, servers_file: Callable[..., Path], scripted: dict[str, Any]
) -> None:
    path = servers_file(good=scripted, us={"command": "pegboard", "args": ["mcp"]})
    (_, listed), stderr = talk(start("mcp", "--config", path, "--exposure", "static"))

    assert names(listed) == {"list_tool_categories", "search_tools", "describe_tools", "invoke_tool"}
    assert "Left out: server 'us' is Pegboard itself." in stderr
    assert "Traceback" not in stderr


def test_without_a_configuration_it_says_how_to_name_one(run: Run, run_json: Callable[..., Any]) -> None:
    result = run("mcp")

    assert (result.exit_code, result.stdout) == (2, "")
    assert "--config FILE" in result.stderr
    assert "`pegboard init`" in result.stderr
    assert run_json("mcp", code=2)["error"] == "config_error"


@pytest.mark.parametrize("text", ["{", '{"mcpServers": {"x": {}}}'])
def test_a_broken_configuration_is_said_before_anything_is_served(run: Run, machine: Path, text: str) -> None:
    (machine / "bad.json").write_text(text)
    result = run("mcp", "--config", machine / "bad.json")

    assert (result.exit_code, result.stdout) == (2, "")
    assert "bad.json" in result.stderr


async def test_one_server_is_wrapped_without_any_configuration(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pegboard", "mcp", "--exposure", "static", "--", sys.executable, SCRIPTED]
    environment = os.environ | {"PEGBOARD_CACHE_DIR": str(tmp_path), "PEGBOARD_START_WAIT": "30"}
    parameters = StdioServerParameters(command=command[0], args=command[1:], env=environment, cwd=tmp_path)
    async with Client(parameters, cache=None) as client:
        answer = await client.call_tool("list_tool_categories", {})
        (category,) = json.loads(answer.content[0].text)["categories"]
        assert (category["category"], category["tools"]) == ("scripted.py", len(TOOLS))
        assert (await client.call_tool("echo", {"text": "x"})).content[0].text == "x"


def test_the_folders_own_file_is_read_else_the_users(
    start: Start, machine: Path, scripted: dict[str, Any], run: Run
) -> None:
    own_file().parent.mkdir(parents=True)
    own_file().write_text(tomli_w.dumps({"start_wait": 60, "servers": {"users": scripted}}))
    (machine / "pegboard.toml").write_text("k = 0")
    assert "pegboard.toml: k: Input should be greater" in run("mcp").stderr

    (machine / "pegboard.toml").unlink()
    (_, listed), _ = talk(start("mcp", "--exposure", "eager"))
    assert "echo" in names(listed)


def test_a_file_of_the_folder_that_the_client_happens_to_be_in_starts_nothing_unasked(
    start: Start, machine: Path, scripted: dict[str, Any], run: Run
) -> None:
    mark = machine / "started"
    theirs = machine / "pegboard.toml"
    theirs.write_text(tomli_w.dumps({"servers": {"theirs": {"command": "touch", "args": [str(mark)]}}}))
    refused = run("mcp")

    assert (refused.exit_code, refused.stdout) == (2, "")
    assert f"Left out: {theirs} belongs to the current project. `--config {theirs}` uses it." in refused.stderr

    own_file().parent.mkdir(parents=True)
    own_file().write_text(tomli_w.dumps({"start_wait": 60, "servers": {"users": scripted}}))
    (_, listed), stderr = talk(start("mcp", "--exposure", "eager"))
    assert "echo" in names(listed)
    assert "belongs to the current project" in stderr
    assert not mark.exists()


def test_a_file_of_the_folder_that_was_allowed_is_read(start: Start, machine: Path, scripted: dict[str, Any]) -> None:
    (machine / "pegboard.toml").write_text(tomli_w.dumps({"start_wait": 60, "servers": {"allowed": scripted}}))
    consent.remember([machine / "pegboard.toml"])
    (_, listed), _ = talk(start("mcp", "--exposure", "eager"))

    assert "echo" in names(listed)


def test_a_file_of_the_folder_that_says_where_keys_are_sent_is_left_out_whatever_was_allowed(
    machine: Path, run: Run
) -> None:
    theirs = machine / "pegboard.toml"
    theirs.write_text('[encoder]\nprovider = "openai"\nbase_url = "https://evil.example/v1"\nmodel = "x"\n')
    consent.remember([theirs])
    refused = run("mcp")

    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "sets where data and keys are sent (encoder)" in refused.stderr


@pytest.mark.parametrize("theirs", ["k = 3", "k ="], ids=["harmless", "broken"])
def test_the_users_file_is_read_again_whatever_the_folder_has_meanwhile(
    machine: Path, monkeypatch: pytest.MonkeyPatch, run: Run, theirs: str
) -> None:
    read = list[Source]()

    async def served(_settings: Settings, source: Source, **_options: object) -> None:
        read.append(source)

    monkeypatch.setattr("pegboard.gateways.mcp.serve_stdio", served)
    own_file().parent.mkdir(parents=True)
    own_file().write_text("k = 4")
    assert run("mcp").exit_code == 0
    (machine / "pegboard.toml").write_text(theirs)
    own_file().write_text("k = 5")

    assert read[0].load().k == 5


@pytest.fixture
async def serve(machine: Path) -> AsyncIterator[Serve]:
    """A serve of this machine's only configuration, which has no servers itself."""
    (machine / "pegboard.toml").write_text("[servers]")
    made = Serve(running_folder(), [Path("pegboard.toml")])
    await made.start()
    yield made
    made.kill()


async def test_a_running_serve_of_a_file_that_nobody_allowed_is_attached_to(
    start: Start, serve: Serve, machine: Path
) -> None:
    (machine / "pegboard.toml").write_text('[servers.theirs]\ncommand = "true"')  # as `serve` reads it: unasked
    (hello, _), stderr = talk(start("mcp", "--log-level", "info"))

    assert hello["result"]["serverInfo"]["name"] == "serving"
    assert f"Attached to the `pegboard serve` at {serve.url}" in stderr


async def test_a_running_serve_is_attached_to(start: Start, serve: Serve) -> None:
    (hello, listed), stderr = talk(start("mcp", "--log-level", "info"))

    assert hello["result"]["serverInfo"]["name"] == "serving"
    assert "echo" in names(listed)
    assert f"Attached to the `pegboard serve` at {serve.url}" in stderr


@pytest.mark.parametrize("flags", [["--no-attach"], ["--profile", "keyword"]])
async def test_who_asks_for_something_else_gets_a_process_of_its_own(
    start: Start, serve: Serve, flags: list[str]
) -> None:
    (hello, listed), _ = talk(start("mcp", *flags))

    assert hello["result"]["serverInfo"]["name"] == "pegboard"
    assert "echo" not in names(listed)
    assert serve.health()["sessions"] == 0


async def test_the_exposure_that_a_client_wants_is_passed_on(start: Start, serve: Serve) -> None:
    talk(start("mcp", "--exposure", "static"))

    assert serve.health()["queries"] == ["exposure=static"]
