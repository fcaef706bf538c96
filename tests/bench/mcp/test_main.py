from __future__ import annotations

import json
from pathlib import Path

import typer
from typer.testing import CliRunner

from pegboard_bench.mcp import __main__ as benchmark
from pegboard_bench.mcp.page import section


def test_it_measures_what_can_be_measured_and_says_what_cannot(tmp_path: Path) -> None:
    program = typer.Typer()
    program.command()(benchmark.main)
    words = ["--fastmcp", "not-there", "--rounds", "2", "--transports", "stdio", "--eras", "modern", "--out"]
    result = CliRunner().invoke(program, [*words, str(tmp_path)])
    written = json.loads((tmp_path / "mcp.json").read_text("utf-8"))

    assert result.exit_code == 0, result.output
    assert "Not measured: FastMCP" in result.stderr
    assert {f"{work}_over_{base}/stdio/modern" for work in ("hop", "list") for base in ("direct", "bare_sdk")} <= set(
        written["figures"]
    )
    assert str(tmp_path) not in json.dumps(written)
    assert "| stdio, modern (2026-07-28) |" in section(written)
