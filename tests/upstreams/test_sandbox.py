"""Servers in a sandbox. Those in bubblewrap are real: they try to get out, and say what came of it."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pegboard.errors import UpstreamError
from pegboard.model import ToolId
from pegboard.settings import Settings, load_settings
from pegboard.settings.sandbox_settings import SandboxSettings
from pegboard.settings.server_spec import ServerSpec
from pegboard.upstreams import Fleet, sandbox
from pegboard.upstreams.sandbox import container_environment, sandboxed
from upstream_specs import fleet_of

__all__ = ["fleet_of"]

MakeFleet = Callable[..., Fleet]
ROOT = Path(__file__).parents[2]
PRYING = str(ROOT / "tests" / "servers" / "prying.py")
PROBE = [shutil.which("bwrap") or "bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"]
NO_NAMESPACES = "bubblewrap may not make namespaces on this machine"
"""The one reason for which CI lets these tests skip."""


def allowed() -> bool:
    """Whether the machine lets bubblewrap work. Where it is not installed, the tests fail."""
    if shutil.which("bwrap") is None:
        return True
    return subprocess.run(PROBE, capture_output=True, check=False).returncode == 0


in_bubblewrap = pytest.mark.skipif(not allowed(), reason=NO_NAMESPACES)


def prying(**options: Any) -> ServerSpec:
    chosen = SandboxSettings(**{"kind": "bubblewrap", "read": (str(ROOT),)} | options)
    return ServerSpec(name="prying", command=sys.executable, args=(PRYING,), env={"MINE": "m"}, sandbox=chosen)


async def attempts(fleet_of: MakeFleet, spec: ServerSpec, *tried: tuple[str, object]) -> list[str]:
    async with fleet_of(spec) as fleet:
        await fleet.settled(30)
        status = fleet.status()[0]
        assert status.available, status.reason
        told = [
            await fleet.call(ToolId("prying", "attempt"), {"what": what, "where": str(where)}) for what, where in tried
        ]
    return [each["content"][0]["text"] for each in told]


@in_bubblewrap
async def test_a_server_in_bubblewrap_reads_and_writes_only_what_its_entry_allows(
    fleet_of: MakeFleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-operator")
    shown, kept, secret = tmp_path / "shown", tmp_path / "kept", tmp_path / "secret"
    for folder in (shown, kept, secret):
        folder.mkdir()
        (folder / "file").write_text(folder.name)
    spec = prying(read=(str(ROOT), str(shown)), write=(str(kept),))
    told = await attempts(
        fleet_of,
        spec,
        ("read", shown / "file"),
        ("write", shown / "file"),
        ("read", kept / "file"),
        ("write", kept / "file"),
        ("read", secret / "file"),
        ("list", tmp_path),
        ("read", "/etc/shadow"),
        ("write", "/usr/written"),
        ("write", Path.home() / "written-by-prying"),
        ("read", Path.home() / "written-by-prying"),
        ("variable", "MINE"),
        ("variable", "OPENAI_API_KEY"),
    )

    assert told == [
        *("shown", "OSError", "kept", "7 characters"),
        *("FileNotFoundError", "kept shown", "FileNotFoundError", "OSError"),
        *("7 characters", "written"),
        *("m", "unset"),
    ]
    assert (kept / "file").read_text() == "written"
    assert (shown / "file").read_text() == "shown"
    assert not (Path.home() / "written-by-prying").exists(), "its home is its own, and gone"


@in_bubblewrap
async def test_a_server_in_bubblewrap_sees_no_other_process_and_has_the_network_only_where_it_is_said(
    fleet_of: MakeFleet,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        alone, processes = await attempts(fleet_of, prying(), ("connect", port), ("list", "/proc"))
        (together,) = await attempts(fleet_of, prying(network=True), ("connect", port))

    assert alone in ("ConnectionRefusedError", "OSError")
    assert together == "connected"
    assert str(os.getpid()) not in [word for word in processes.split() if word.isdigit()]
    assert len([word for word in processes.split() if word.isdigit()]) < 5


@in_bubblewrap
async def test_a_server_in_bubblewrap_ends_with_its_connection(fleet_of: MakeFleet, tmp_path: Path) -> None:
    marker = f"marker-{tmp_path.name}-{os.getpid()}"
    spec = prying()
    async with fleet_of(spec.model_copy(update={"args": (PRYING, marker)})) as fleet:
        await fleet.settled(30)
        assert running(marker), fleet.status()[0].reason
    await asyncio.to_thread(until_gone, marker)
    assert not running(marker)


def until_gone(marker: str) -> None:
    until = time.monotonic() + 30
    while running(marker) and time.monotonic() < until:
        time.sleep(0.05)


def running(marker: str) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes()
        except OSError:
            continue
        found += [process.name] if marker.encode() in words else []
    return found


@in_bubblewrap
async def test_the_folder_of_a_server_is_there_for_reading(fleet_of: MakeFleet, tmp_path: Path) -> None:
    (tmp_path / "note").write_text("in the folder")
    spec = prying().model_copy(update={"cwd": str(tmp_path)})

    assert await attempts(fleet_of, spec, ("read", "note"), ("write", "note")) == ["in the folder", "OSError"]


@pytest.mark.parametrize(
    ("script", "platform", "says"),
    [
        (None, "linux", "not installed"),
        ("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n", "linux", "uid map"),
        (None, "darwin", "only on Linux"),
    ],
)
async def test_where_the_machine_has_no_bubblewrap_the_server_is_not_started_and_it_is_said(
    fleet_of: MakeFleet,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str | None,
    platform: str,
    says: str,
) -> None:
    bwrap = tmp_path / "bwrap"
    if script:
        bwrap.write_text(script)
        bwrap.chmod(0o755)
    found = shutil.which
    monkeypatch.setattr(
        sandbox.shutil,
        "which",
        lambda name, **more: (script and str(bwrap)) if name == "bwrap" else found(name, **more),
    )
    monkeypatch.setattr("pegboard.operating_system.PLATFORM", platform)
    with pytest.raises(UpstreamError) as caught:
        sandboxed([sys.executable], prying(), {}, None)

    assert says in str(caught.value)
    assert '"docker" or "none"' in str(caught.value)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UpstreamError, match="absent"):
        sandboxed([sys.executable], prying(read=(str(tmp_path / "absent"),)), {}, None)


def test_the_command_line_of_docker_allows_what_the_entry_says_and_has_no_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox.shutil, "which", lambda name: f"/usr/bin/{name}")
    chosen = SandboxSettings(kind="docker", image="node:24", read=(str(tmp_path),), write=("/srv",))
    spec = ServerSpec(name="s", command="npx", env={"TOKEN": "s3cret"}, sandbox=chosen)
    made = sandboxed(["npx", "-y", "some-mcp"], spec, {}, None)

    assert made[-4:] == ["node:24", "npx", "-y", "some-mcp"]
    assert made[:3] == ["/usr/bin/docker", "run", "--rm"]
    assert f"type=bind,source={tmp_path},target={tmp_path},readonly" in made
    assert "type=bind,source=/srv,target=/srv" in made
    for option, value in (("--network", "none"), ("--cap-drop", "ALL"), ("--env", "TOKEN")):
        assert made[made.index(option) + 1] == value
    assert "s3cret" not in " ".join(made)
    assert container_environment(spec, {"PATH": "/p", "OPENAI_API_KEY": "k"}) == {"PATH": "/p", "TOKEN": "s3cret"}
    networked = spec.model_copy(update={"sandbox": chosen.model_copy(update={"network": True})})
    assert "--network" not in sandboxed(["npx"], networked, {}, None)


def test_without_docker_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox.shutil, "which", lambda _name: None)
    spec = ServerSpec(name="s", command="npx", sandbox=SandboxSettings(kind="docker", image="node:24"))
    with pytest.raises(UpstreamError, match="docker, which is not installed"):
        sandboxed(["npx"], spec, {}, None)


def test_one_sandbox_for_all_servers_leaves_those_that_say_their_own(tmp_path: Path) -> None:
    path = tmp_path / "pegboard.toml"
    path.write_text("""
sandbox = "bubblewrap"
[servers.a]
command = "a"
[servers.b]
command = "b"
sandbox = { kind = "bubblewrap", network = true, read = ["${HOME}/notes"] }
[servers.c]
command = "c"
sandbox = "none"
[servers.d]
url = "http://127.0.0.1:1/mcp"
""")
    found = load_settings([path]).enabled_servers

    assert {name: spec.sandbox and spec.sandbox.kind for name, spec in found.items()} == {
        "a": "bubblewrap",
        "b": "bubblewrap",
        "c": "none",
        "d": None,
    }
    expanded = found["b"].expanded({"HOME": "/home/ann"}).sandbox
    assert expanded
    assert (expanded.network, expanded.read) == (True, ("/home/ann/notes",))
    assert Settings().enabled_servers == {}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"command": "x", "sandbox": "chroot"}, "bubblewrap"),
        ({"command": "x", "sandbox": "docker"}, "needs an image"),
        ({"command": "x", "sandbox": {"kind": "bubblewrap", "image": "i"}}, "for docker"),
        ({"command": "x", "sandbox": {"read": ["/srv"]}}, "only in bubblewrap or docker"),
        ({"command": "x", "sandbox": {"kind": "bubblewrap", "folders": []}}, "folders"),
        ({"url": "http://127.0.0.1/mcp", "sandbox": "bubblewrap"}, "for a server with a command"),
    ],
)
def test_a_sandbox_that_cannot_be_meant_is_an_error(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        ServerSpec.model_validate({"name": "s"} | given)
