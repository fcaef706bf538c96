"""What servers from registries list: from a mirror, or by starting them once."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pegboard.errors import ConfigError
from pegboard_bench.sets import packages
from pegboard_bench.sets.packages import Packages
from pegboard_bench.sets.recipe import LISTING, Package

SCRIPTED_SERVER = Path(__file__).parents[2] / "servers" / "scripted.py"
PACKAGE = Package(registry="npm", name="@desk/lamp", version="1.2.3", program="lamp", licence="MIT")

pytestmark = pytest.mark.requirement("bench.public-sets")


def test_a_mirror_has_the_answer_of_a_server(tmp_path: Path) -> None:
    answer = tmp_path / "npm" / "@desk" / "lamp@1.2.3.json"
    answer.parent.mkdir(parents=True)
    answer.write_text('{"tools": []}')
    mirror = Packages(tmp_path / "cache", tmp_path)

    assert mirror.open(PACKAGE).json(LISTING) == {"tools": []}
    with pytest.raises(
        ConfigError, match=r"lists is not in the mirror\. Put its tools/list answer into .*lamp@9\.json"
    ):
        mirror.open(Package(registry="npm", name="@desk/lamp", version="9", program="lamp", licence="MIT"))


def test_a_server_is_started_once_and_its_answer_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def installed(_package: Package, folder: Path) -> Path:
        program = folder / "lamp"
        program.write_text(f"#!/bin/sh\nexec {sys.executable} {SCRIPTED_SERVER}\n")
        program.chmod(0o755)
        return program

    said: list[str] = []
    monkeypatch.setattr(packages, "_from_npm", installed)
    first = Packages(tmp_path / "cache", tell=said.append).open(PACKAGE).json(LISTING)["tools"]
    second = Packages(tmp_path / "cache", tell=said.append).open(PACKAGE).json(LISTING)["tools"]

    assert first == second
    assert all({"name", "inputSchema"} <= set(tool) for tool in first)
    assert said == ["starting @desk/lamp 1.2.3 from npm"]


def test_what_cannot_be_installed_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(command: list[str], **_rest: Any) -> None:
        raise subprocess.CalledProcessError(1, command, stderr="much\nno such version\n")

    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(subprocess, "run", fails)
    with pytest.raises(ConfigError, match=r"@desk/lamp 1\.2\.3 cannot be installed from npm: no such version"):
        Packages(tmp_path).open(PACKAGE)


def test_npm_that_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(ConfigError, match="needs npm, which is not installed"):
        Packages(tmp_path).open(PACKAGE)
    assert json.dumps([path.name for path in tmp_path.iterdir()]) == "[]"
