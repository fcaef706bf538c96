"""`pegboard serve` as a process: how it starts, and how it ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from doors import Raw
from processes import alive, descendants, eventually
from upstream_specs import SCRIPTED

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")

ENDS = 15.0
"""Seconds on a machine that is busy; the grace for requests is 3."""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PEGBOARD_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("PEGBOARD_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "servers.json"
    servers = {"scripted": {"command": sys.executable, "args": [SCRIPTED]}}
    path.write_text(json.dumps({"mcpServers": servers, "pegboard": {"profile": "keyword", "start_wait": 20}}))
    return path


@pytest.fixture
def serving(config: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    process = start("--config", config, "--port", "0", "--json")
    assert process.stdout is not None
    try:
        yield process, json.loads(process.stdout.readline())["url"]
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def start(*words: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "pegboard", "serve", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ))


def test_a_port_that_is_taken_is_an_error_that_says_what_to_do(config: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = start("--config", config, "--port", port)
        out, err = process.communicate(timeout=60)
    said = " ".join(err.split())
    assert process.returncode not in (0, None)
    assert out == ""
    assert f"127.0.0.1:{port}" in said
    assert "--port" in said
    assert "Traceback" not in said


def test_an_address_that_is_none_of_this_machines_is_an_error_too(config: Path) -> None:
    process = start("--config", config, "--host", "203.0.113.7", "--port", "0")
    _, err = process.communicate(timeout=60)
    assert process.returncode not in (0, None)
    assert "203.0.113.7" in err
    assert "Traceback" not in err


async def test_with_json_the_url_is_all_of_stdout(serving: tuple[subprocess.Popen[str], str]) -> None:
    process, url = serving
    async with httpx2.AsyncClient(trust_env=False, timeout=60) as http:
        client = await Raw(http, url).begin()
        assert await client.call("echo", text="x") == "x"
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=ENDS)
    assert out == ""


@pytest.mark.requirement("M13")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_soon_with_open_streams_and_leaves_no_process(
    serving: tuple[subprocess.Popen[str], str], how: signal.Signals
) -> None:
    process, url = serving
    async with httpx2.AsyncClient(trust_env=False, timeout=60) as http:
        clients = [await Raw(http, url).begin() for _ in range(3)]
        async with clients[0].stream(), clients[1].stream():
            await clients[2].call("echo", text="x")
            servers = descendants(process.pid)
            assert servers
            process.send_signal(how)
            assert eventually(lambda: process.poll() is not None, ENDS)
    assert process.returncode in (0, 128 + how, -how)
    assert eventually(lambda: not any(map(alive, servers)), ENDS)
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()


async def test_a_call_under_way_does_not_keep_it_from_ending(serving: tuple[subprocess.Popen[str], str]) -> None:
    process, url = serving
    async with httpx2.AsyncClient(trust_env=False, timeout=90) as http:
        client = await Raw(http, url).begin()
        await client.call("echo", text="x")
        calling = asyncio.create_task(client.post("tools/call", {"name": "slow", "arguments": {}}))
        await asyncio.wait([calling], timeout=0.5)
        servers = descendants(process.pid)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(eventually, lambda: process.poll() is not None, ENDS)
        await asyncio.wait([calling])
        calling.exception()
    assert eventually(lambda: not any(map(alive, servers)), ENDS)
