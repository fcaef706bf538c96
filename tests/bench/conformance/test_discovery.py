"""The checks of progressive discovery: our own server passes all of them, and what a server gets wrong is named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from mcp import Client
from mcp.client.extension import advertise
from mcp.server.mcpserver import MCPServer

from pegboard.gateways.mcp.embedded import progressive_discovery
from pegboard_bench.conformance import discovery

SERVER = """
from pathlib import Path
from mcp.server.mcpserver import MCPServer
import pegboard
from pegboard.compose import default_parts
from pegboard.settings import load_settings
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder

server = MCPServer("shop")
for name in ("list_orders", "cancel_order", "count_stock"):
    server.add_tool(lambda of="": of, name=name, description=name, meta={"category": name.split("_")[1]})
settings = load_settings(cache_dir=Path(FOLDER), state_dir=Path(FOLDER))
parts = default_parts(settings, encoder=FakeEncoder(), embeddings=MemoryEmbeddings())
lazy = pegboard.lazy(server, parts=parts, eager_tokens=0, eager_tools=0)
"""


def script(folder: Path) -> Path:
    path = folder / "shop.py"
    path.write_text(SERVER.replace("FOLDER", repr(str(folder))) + "\nlazy.run('stdio')\n")
    return path


def checked(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pegboard_bench.conformance.discovery", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.requirement("022.progressive-discovery")
def test_a_lazy_server_passes_every_check_from_the_command_line(tmp_path: Path) -> None:
    done = checked("--", sys.executable, str(script(tmp_path)))
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["passed"] * len(discovery.CHECKS)


async def test_a_server_without_the_extension_fails_every_check() -> None:
    async with Client(MCPServer("plain"), cache=None, extensions=[advertise(discovery.EXTENSION, {})]) as client:
        found = await discovery.failures(client)
    assert all(found.values()), found


async def test_a_wrong_digest_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: dict[str, object] = {}
    exec(SERVER.replace("FOLDER", repr(str(tmp_path))), made)  # noqa: S102 - our own text
    monkeypatch.setattr(progressive_discovery, "digest", lambda definition: "sha256:0")
    async with Client(made["lazy"], cache=None, extensions=[advertise(discovery.EXTENSION, {})]) as client:  # type: ignore[arg-type]
        found = await discovery.failures(client)
    assert found["has_the_digest_of_each_definition"] == "the digest of list_orders is another"
    assert not found["declares_the_extension"]


def test_without_a_server_it_says_how_it_is_used() -> None:
    done = checked()
    assert done.returncode == 2
    assert "discovery URL" in done.stderr


def test_a_server_that_cannot_be_reached_is_an_error_without_a_traceback() -> None:
    for words in (("--", "no-such-command"), ("http://127.0.0.1:9/mcp",)):
        done = checked(*words)
        assert done.returncode == 2, done.stdout
        assert f"{words[-1]} cannot be checked" in done.stderr
        assert "Traceback" not in done.stderr
