"""The tutorial runs from top to bottom in an empty folder, and says what it says there.

Its servers are those that scripts/install_servers.py installed from the same packages; the rest is done as written.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("langchain", reason="pip install --group sdks")

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
SERVERS = ROOT / ".demo" / "servers"
INSTALLED = ("pip install", "python -m venv", "servers/bin/pip install")


@pytest.mark.skipif(not SERVERS.exists(), reason="python scripts/install_servers.py")
def test_the_tutorial_runs_as_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PEGBOARD_CACHE_DIR", str(tmp_path / "cache"))
    blocks = BLOCK.findall(PAGE.read_text())
    namespace: dict[str, object] = {"__name__": "tutorial"}
    ran = 0

    for number, (kind, text) in enumerate(blocks):
        match kind:
            case "console":
                for line in text.splitlines():
                    _command(line.removeprefix("$ "))
            case "json":
                Path("mcp.json").write_text(json.dumps(json.loads(text)))
            case "python":
                exec(compile(text, f"tutorial-{number}", "exec"), namespace)  # noqa: S102 - that is the test
                ran += 1
            case "text":
                assert capsys.readouterr().out == text, f"what block {number - 1} says"

    assert ran == 5


def _command(line: str) -> None:
    """A line of the console; of those that install, only the servers are needed, and they are here."""
    if line.startswith("servers/bin/pip install"):
        for package in line.split()[2:]:
            program = Path("servers/bin") / package
            program.parent.mkdir(parents=True, exist_ok=True)
            program.symlink_to(SERVERS / package.removeprefix("mcp-server-") / "bin" / package)
    elif not line.startswith(INSTALLED):
        subprocess.run(line, shell=True, check=True)  # noqa: S602 - a line of our own page
