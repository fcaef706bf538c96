"""The real agents read what `pegboard init` wrote: each lists Pegboard's entry with its board, and no other."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from client_samples import SAMPLES

INSTALLED = Path(__file__).parents[2] / ".demo" / "agents"
BY_CLIENT = {sample.client: sample for sample in SAMPLES}
PROGRAMS = {
    "codex": "codex/node_modules/.bin/codex",
    "gemini-cli": "gemini_cli/node_modules/.bin/gemini",
    "qwen-code": "qwen_code/node_modules/.bin/qwen",
    "opencode": "opencode/node_modules/.bin/opencode",
    "claude-code": "claude_code/node_modules/.bin/claude",
    "copilot-cli": "copilot_cli/node_modules/.bin/copilot",
}
BRIEF = ("copilot-cli",)
"""Agents that list names alone, and say more of one that is asked for."""
COLORS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@pytest.fixture(autouse=True)
def installed() -> None:
    if sys.platform != "linux":
        pytest.skip("Linux only, as is CI")
    if not (INSTALLED / "codex").is_dir():
        message = "install the agents: python scripts/install_agents.py"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / "work").mkdir(parents=True)
    return tmp_path / "home"


def run(home: Path, *words: str) -> str:
    """What a program says, in the home folder's project; without the model's address, nothing is looked for."""
    path = f"{INSTALLED / 'node' / 'node_modules' / '.bin'}:{os.environ['PATH']}"
    environment = {"HOME": str(home), "PATH": path, "CI": "1", "DISABLE_AUTOUPDATER": "1"}
    done = subprocess.run(
        words, cwd=home / "work", env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=280
    )
    return COLORS.sub("", done.stdout + done.stderr)


def init(home: Path, *words: str) -> None:
    said = run(home, sys.executable, "-m", "pegboard", "init", *words)
    assert "Traceback" not in said, said


def listed(home: Path, client: str) -> str:
    program = str(INSTALLED / PROGRAMS[client])
    return run(home, program, "mcp", "list") + (run(home, program, "mcp", "get", "pegboard") if client in BRIEF else "")


@pytest.mark.parametrize("client", PROGRAMS)
def test_a_real_agent_lists_what_init_wrote(home: Path, client: str) -> None:
    sample = BY_CLIENT[client]
    file = home / sample.file
    file.parent.mkdir(parents=True, exist_ok=True)
    missing = str(home / "no-such-program")  # so that an agent that starts its servers does not wait for them
    text = sample.text.replace('"npx"', json.dumps(missing)).replace('"search-mcp"', json.dumps(missing))
    file.write_text(text.replace("http://127.0.0.1:7001", "http://127.0.0.1:1"))
    before = file.read_bytes()
    init(home, "--write")
    written = file.read_bytes()
    board = home / ".config" / "pegboard" / "pegboard.toml"
    board.rename(board.with_suffix(".away"))  # Pegboard ends at once, too
    now = listed(home, client)

    assert re.search(r"\bpegboard\b", now), now
    assert str(board) in now
    assert "files" not in now.replace(str(home), "")
    written_by_client = file.read_bytes() != written  # Claude Code and qwen-code note their version
    board.with_suffix(".away").rename(board)
    init(home, "--undo")
    if written_by_client:
        assert json.loads(file.read_bytes())[sample.place] == json.loads(before)[sample.place]
    else:
        assert file.read_bytes() == before


def test_claude_code_starts_the_boards_of_all_three_scopes(home: Path) -> None:
    project, entry = home / "work", {"command": str(home / "no-such-program")}
    local = {"mcpServers": {"mine": entry}}
    (home / ".claude.json").write_text(
        json.dumps({"mcpServers": {"all": entry}, "projects": {str(project): local}}, indent=2)
    )
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"ours": entry}}))
    init(home, "--write")
    (project / "pegboard.toml").unlink()
    now = listed(home, "claude-code")

    for name in ("pegboard", "pegboard-project", "pegboard-local"):
        assert re.search(rf"^{name}: ", now, re.MULTILINE), now
