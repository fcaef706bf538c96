"""A whole sign-in as a person does it: the program, a browser, a consent page; at three makes of servers."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pegboard_bench.ports import free_port
from processes import eventually, listening
from signers import AUTHORIZATION, RESOURCE, SIGNED, control

TESTS = Path(__file__).parents[1]
CHROMIUM = shutil.which("chromium") or ""
BY_CHROMIUM = f"{sys.executable} {TESTS / 'clients' / 'consenting_chromium.py'} {CHROMIUM} %s"
BY_SCRIPT = f"{sys.executable} {TESTS / 'clients' / 'answering_browser.py'} allow %s"
FASTMCP = Path(os.environ.get("TEST_CLIENTS", TESTS.parent / ".demo" / "clients")) / "fastmcp" / "bin" / "python"

ServersFile = Callable[..., Path]


def pegboard(*words: object, browser: str) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ) | {"BROWSER": browser, "PEGBOARD_CREDENTIALS": "file"}
    command = [sys.executable, "-m", "pegboard", *map(str, words)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280)


def listed(config: Path) -> list[str]:
    """The servers whose tools are there."""
    done = pegboard("audit", "--config", config, "--json", browser=BY_SCRIPT)
    assert done.returncode == 0, done.stdout + done.stderr
    said: Any = json.loads(done.stdout)
    assert said["unreachable"] == []
    return [each["name"] for each in said["servers"]]


@pytest.mark.requirement("023.browser", "023.private")
@pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed")
def test_a_person_signs_in_with_chromium_and_the_tools_are_there(servers_file: ServersFile, machine: Path) -> None:
    with listening(AUTHORIZATION) as at, listening(RESOURCE, json.dumps({"issuer": at})) as url:
        config = servers_file(signed={"url": f"{url}/mcp"})
        done = pegboard("login", "signed", "--config", config, "--verbose", browser=BY_CHROMIUM)
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"Signed in to 'signed' at {at}" in done.stdout
        assert "You are signed in to signed" in done.stdout, "what Chromium showed last"
        assert listed(config) == ["signed"]

        secrets = asyncio.run(control(at))["tokens"]
        kept = b"".join(path.read_bytes() for path in machine.rglob("*") if path.is_file())
    assert len(secrets) == 2
    assert not [each for each in secrets if each in done.stdout + done.stderr or each.encode() in kept]


@pytest.mark.requirement("023.browser")
@pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed")
def test_a_person_signs_in_with_chromium_at_the_sdks_own_server(servers_file: ServersFile) -> None:
    with listening(SIGNED) as url:
        config = servers_file(signed={"url": f"{url}/mcp"})
        done = pegboard("login", "signed", "--config", config, browser=BY_CHROMIUM)
        assert done.returncode == 0, done.stdout + done.stderr
        assert listed(config) == ["signed"]


@contextmanager
def fastmcp() -> Iterator[str]:
    port = free_port()
    process = subprocess.Popen([FASTMCP, TESTS / "servers" / "fastmcp_signed.py", str(port)])
    try:
        assert eventually(lambda: _listens(port))
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.requirement("023.browser")
@pytest.mark.skipif(not FASTMCP.is_file(), reason="FastMCP is not installed: python scripts/install_clients.py")
def test_fastmcps_own_oauth_is_signed_in_to_used_and_left(servers_file: ServersFile) -> None:
    with fastmcp() as url:
        config = servers_file(signed={"url": f"{url}/mcp"})
        done = pegboard("login", "signed", "--config", config, browser=BY_SCRIPT)
        assert done.returncode == 0, done.stdout + done.stderr
        assert listed(config) == ["signed"]
        ended = pegboard("logout", "signed", browser=BY_SCRIPT)
        assert "They are revoked" in ended.stdout, ended.stdout + ended.stderr
