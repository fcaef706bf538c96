"""What a server costs: the arithmetic over the rounds, and what the page says of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pegboard_bench.fleet import footprint
from pegboard_bench.fleet.footprint_page import section

ROUNDS = {
    "slowest_alone": [2.0, 3.0, 2.5],
    "known": [1.5, 3.5, 2.75],
    "one": [200.0, 210.0, 205.0],
    "all": [240.0, 246.0, 300.0],
}


def test_memory_of_a_server_is_what_each_beyond_the_first_adds_within_a_round() -> None:
    made = footprint.figures(ROUNDS, servers=5)

    assert made["memory_mb_per_server"] == pytest.approx(10.0)
    assert made["startup_s/known_over_slowest"] == pytest.approx(0.25)


def test_the_fleet_of_one_is_the_first_server_of_the_configuration(tmp_path: Path) -> None:
    config = tmp_path / "fleet.json"
    config.write_text(json.dumps({"mcpServers": {"a": {"command": "one"}, "b": {"command": "two"}}}))

    assert json.loads(footprint.of_one(config, tmp_path).read_text()) == {"mcpServers": {"a": {"command": "one"}}}


def test_the_page_says_both_figures_with_what_they_are_made_of() -> None:
    stamp = {"commit": "c" * 40, "date": "2026-11-24T00:00:00", "machine": {"cores": 2, "cpu": "x", "python": "3.11"}}
    shown = section(footprint.figures(ROUNDS, servers=5), stamp | {"servers": 5, "rounds": ROUNDS})

    assert "**10.0 MB** for each server more" in shown
    assert "**+0.2 s**" in shown or "**+0.3 s**" in shown
    assert "medians of 3 rounds with 5 servers" in shown
