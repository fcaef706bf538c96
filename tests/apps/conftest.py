"""A clean machine for the command line: an own home, an own cache, a fake encoder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from pegboard.apps.cli import app
from pegboard.testing import FakeEncoder

ROOT = Path(__file__).parents[1]
SCRIPTED_SERVER = ROOT / "servers" / "scripted.py"

Run = Callable[..., Result]


@pytest.fixture
def cli_data(data: Path) -> Path:
    return data / "cli"


@pytest.fixture
def tools(cli_data: Path) -> Path:
    """Twelve tools of four servers."""
    return cli_data / "tools.jsonl"


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder that is also the current one, with nothing in it."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(home)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PEGBOARD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return home


@pytest.fixture
def run(encoder: FakeEncoder) -> Run:
    """Runs the program in process, with a fake encoder and what is typed into it."""

    def invoke(*words: object, typed: str | None = None, **parts: object) -> Result:
        return CliRunner().invoke(
            app, [str(word) for word in words], typed, prog_name="pegboard", obj={"encoder": encoder} | parts
        )

    return invoke


@pytest.fixture
def run_json(run: Run) -> Callable[..., Any]:
    """The same with --json: what stdout holds, whole."""

    def invoke(*words: object, code: int = 0, **options: Any) -> Any:
        result = run(*words, "--json", **options)
        assert result.exit_code == code, result.output
        return json.loads(result.stdout)

    return invoke


@pytest.fixture
def start() -> Callable[..., subprocess.Popen[bytes]]:
    """Starts the program as a process of its own, with redirections as a shell writes them."""

    def popen(*words: object, redirected: str = "") -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "pegboard", *map(str, words)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        shell = ["sh", "-c", f'exec "$@" {redirected}', "sh"] if redirected else []
        return subprocess.Popen([*shell, *command], env=dict(os.environ), **pipes)

    return popen


@pytest.fixture
def servers_file(machine: Path) -> Callable[..., Path]:
    """A client's configuration with these servers."""

    def write(name: str = "servers.json", **servers: dict[str, Any]) -> Path:
        path = machine / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"mcpServers": servers}))
        return path

    return write


@pytest.fixture
def scripted() -> dict[str, Any]:
    """The entry of a server that works."""
    return {"command": sys.executable, "args": [str(SCRIPTED_SERVER)]}
