"""`scripts/update_dependencies.py`, with a pip that knows a few packages and asks no index."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import update_dependencies

PIP = """
import json, sys
LATEST = {"mcp": "3.1.4", "toktok-rs": "0.4.2", "numpy": "2.4.6", "torch": "2.14.0", "rich": "15.0"}
name = sys.argv[-1]
assert sys.argv[-4:-1] == ["index", "versions", "--json"], sys.argv
if name not in LATEST:
    sys.exit("WARNING: Retrying\\nERROR: No matching distribution found for " + name)
print(json.dumps({"name": name, "latest": LATEST[name]}))
"""
PROJECT = """\
[build-system]
requires = ["rich>=13"]  # no upper bound

[project]
dependencies = [
  "mcp>=1.10,<3", # a comment that stays
  "toktok-rs>=0.3,<0.4; sys_platform != 'win32'",
]

[project.optional-dependencies]
bench = ["pegboard-bench"]

[dependency-groups]
dev = [{ include-group = "test" }]
test = ["numpy~=2.4"]
"""
PINS = "# exact, on purpose\ntorch==2.13.0\n--no-deps\nnumpy==2.4.6  # newest\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "scripts" / "encoder-requirements.txt").write_text(PINS)
    (tmp_path / "pip.py").write_text(PIP)
    return tmp_path


def run(root: Path, *words: str) -> int:
    return update_dependencies.main(words, root=root, pip=(sys.executable, str(root / "pip.py")))


def test_the_table_has_every_requirement_with_its_bound_and_the_newest_version(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(root) == 0

    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [(line[0], line[3], line[4]) for line in lines[1:]] == [
        ("rich", "15.0", "yes"),
        ("mcp", "3.1.4", "no:"),
        ("toktok-rs", "0.4.2", "no:"),
        ("numpy", "2.4.6", "yes"),
        ("torch", "2.14.0", "no:"),
        ("numpy", "2.4.6", "yes"),
    ]


def test_a_check_fails_if_and_only_if_a_bound_excludes_the_newest_version(root: Path) -> None:
    assert run(root, "--check") == 1
    assert run(root, "--check", "numpy", "rich") == 0


def test_writing_raises_upper_bounds_and_nothing_else(root: Path) -> None:
    assert run(root, "--write") == 0

    raised = PROJECT.replace("<3", "<4").replace("<0.4;", "<0.5;")
    assert (root / "pyproject.toml").read_text() == raised
    assert (root / "scripts" / "encoder-requirements.txt").read_text() == PINS.replace("2.13.0", "2.14.0")
    assert run(root, "--check") == 0


def test_without_an_index_the_error_says_what_pip_said_and_nothing_is_written(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "pip.py").write_text(PIP.replace('"mcp": "3.1.4", ', ""))

    assert run(root, "--write") == 2

    said = capsys.readouterr().err
    assert "pip found no version of 'mcp': ERROR: No matching distribution found for mcp" in said
    assert "`pip config list`" in said
    assert (root / "pyproject.toml").read_text() == PROJECT


def test_a_package_that_nothing_requires_is_an_error(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(root, "httpx") == 2
    assert "Nothing requires 'httpx'" in capsys.readouterr().err


def test_every_requirement_of_this_repository_can_be_read() -> None:
    found = [
        each
        for path in update_dependencies.files(update_dependencies.ROOT)
        for each in update_dependencies.bounds(path)
    ]

    assert {"mcp", "numpy", "torch", "mkdocs-material"} <= {each.name for each in found}
