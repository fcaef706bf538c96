from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from pegboard_bench.fleet import __main__ as benchmark
from pegboard_bench.fleet import startup
from pegboard_bench.fleet.page import section

PLAIN = Path(__file__).parents[2] / "servers" / "plain.py"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Two small servers in place of a fleet."""
    tools = {"time": ["get_current_time", "convert_time"], "notes": ["read_note"]}
    servers = {
        name: {"command": sys.executable, "args": [str(PLAIN), str(tmp_path / f"{name}.log"), *names]}
        for name, names in tools.items()
    }
    path = tmp_path / "fleet.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


def run(*words: Any) -> Result:
    program = typer.Typer()
    program.command()(benchmark.main)
    return CliRunner().invoke(program, [*map(str, words)])


@pytest.mark.timeout(600)  # a dozen starts of gateways; it met 120 s on a machine under load
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_tokens_and_starts_are_measured_and_shown(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(startup, "NOTING_SECONDS", 1.0)
    result = run("--config", config, "--out", tmp_path, "--rounds", 1, "--fewest", 2)
    written = json.loads((tmp_path / "fleet.json").read_text("utf-8")) if result.exit_code == 0 else {}

    assert result.exit_code == 0, result.output
    figures = written["figures"]
    assert (figures["servers"], figures["tools"]) == (2, 3)
    assert figures["tokens/eager/start"] == figures["tokens/board"]
    assert figures["tokens/static/start"] > 0
    assert figures["tokens/static/search_adds_to_list"] == 0 <= figures["tokens/dynamic/search_adds_to_list"]
    assert figures["startup_s/all_ready"] > 0
    seconds = written["tables"]["startup"]["seconds"]
    for kind in ("slowest_alone", "all_without_gateway"):
        difference = seconds["all_ready"][0] - seconds[kind][0]
        assert figures[f"startup_s/all_ready_minus_{kind}"] == pytest.approx(difference, abs=0.002)
    assert 0 < figures["startup_s/called_alone"] < figures["startup_s/first_call/again"]
    assert str(tmp_path) not in json.dumps(written)
    assert "2 servers, 3 tools" in section(written)


def test_a_small_fleet_is_no_fleet(config: Path, tmp_path: Path) -> None:
    result = run("--config", config, "--out", tmp_path / "results")

    assert result.exit_code == 1
    assert "at least 12 are needed" in result.stderr
    assert not (tmp_path / "results").exists()
