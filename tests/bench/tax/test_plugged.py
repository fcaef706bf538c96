"""A package of somebody else's that brings a method."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pegboard_bench.tax.methods import GROUP

MODULE = """
from pegboard_bench.tax.methods import Entry
from pegboard_bench.tax.request import Sent


class First:
    async def begin(self, testbed):
        self.tools = testbed.catalog.tools[:30]

    async def play(self, task):
        return [Sent(tools=self.tools, reached=frozenset(tool.id for tool in self.tools)) for _ in task.steps]


FIRST = Entry(title="The first thirty", make=lambda place: First())
"""


def bench(folder: Path, value: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`pegboard bench` where a package is installed whose entry point has this value."""
    installed = folder / "firsts-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: firsts\nVersion: 1.0\n", "utf-8")
    (installed / "entry_points.txt").write_text(f"[{GROUP}]\nfirst = {value}\n", "utf-8")
    (folder / "firsts.py").write_text(MODULE, "utf-8")
    command = [sys.executable, "-m", "pegboard", "bench", "--quick", "--out", str(folder), "--cache", str(folder)]
    paths = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, "NO_COLOR": "1", "COLUMNS": "400"}
    return subprocess.run([*command, *arguments], capture_output=True, text=True, env=environment, check=False)


@pytest.mark.timeout(600)
def test_a_method_of_another_package_is_measured_beside_ours(tmp_path: Path) -> None:
    ran = bench(
        tmp_path, "firsts:FIRST", "--set", "recorded", "--method", "first", "--method", "full", "--part", "tokens"
    )
    assert ran.returncode == 0, ran.stderr
    figures = json.loads((tmp_path / "tax-quick.json").read_text("utf-8"))["figures"]

    alone = subprocess.run(
        [sys.executable, "-c", "import firsts"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert alone.returncode == 0, alone.stderr
    assert 0 < figures["recall/recorded/first"] < figures["recall/recorded/full"] == 1
    assert figures["tokens_per_turn/recorded/first/first"] < 8000


@pytest.mark.parametrize("value", ["nowhere:FIRST", "firsts:First"])
@pytest.mark.timeout(600)
def test_one_that_is_none_is_said_with_what_to_do(tmp_path: Path, value: str) -> None:
    ran = bench(tmp_path, value)

    assert ran.returncode == 2
    assert value in ran.stderr
    assert "Traceback" not in ran.stderr
