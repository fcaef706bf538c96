from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

Run = Callable[..., Result]
RunJson = Callable[..., Any]


@pytest.fixture
def small_set(cli_data: Path) -> Path:
    return cli_data / "small_set"


def rankings(path: Path) -> dict[str, list[str]]:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {row["id"]: ["/".join(tool) for tool in row["ranking"]] for row in rows}


def test_an_ungated_ranking_holds_every_tool_for_every_query(
    run_json: RunJson, small_set: Path, tmp_path: Path
) -> None:
    report = run_json("rank", small_set, "--out", tmp_path / "run.jsonl", "--ungated")
    ranked = rankings(tmp_path / "run.jsonl")

    assert (report["queries"], report["tools"], report["ungated"]) == (7, 12, True)
    assert len(ranked) == 7
    assert all(len(set(tools)) == 12 for tools in ranked.values())
    assert ranked["one"][0] == "weather/current_weather"


def test_a_gated_ranking_holds_the_active_tools_best_first(run_json: RunJson, small_set: Path, tmp_path: Path) -> None:
    run_json("rank", small_set, "--out", tmp_path / "gated.jsonl", "--profile", "attention")
    run_json("rank", small_set, "--out", tmp_path / "all.jsonl", "--profile", "attention", "--ungated")
    gated, everything = rankings(tmp_path / "gated.jsonl"), rankings(tmp_path / "all.jsonl")

    assert all(len(tools) < 12 for tools in gated.values())
    assert all(everything[query][: len(tools)] == tools for query, tools in gated.items())


def test_the_report_says_whether_the_index_was_cold(run_json: RunJson, small_set: Path, tmp_path: Path) -> None:
    words = ("rank", small_set, "--out", tmp_path / "run.jsonl", "--ungated")
    first, second = run_json(*words), run_json(*words)

    assert (first["cold"], second["cold"]) == (True, False)
    assert first["seconds"] >= 0


def test_people_are_told_where_the_file_is(run: Run, small_set: Path, tmp_path: Path) -> None:
    result = run("rank", small_set, "--out", tmp_path / "run.jsonl", "--profile", "keyword")

    assert result.exit_code == 0
    assert "7 queries over 12 tools, profile keyword" in result.stdout
    assert "Written to" in result.stdout


def test_a_folder_that_is_no_set_is_an_error_with_a_remedy(run: Run, tmp_path: Path) -> None:
    result = run("rank", tmp_path, "--out", tmp_path / "run.jsonl")

    assert result.exit_code == 2
    assert "catalog.jsonl.gz" in result.stderr


def test_a_file_that_cannot_be_written_is_found_out_before_the_work(run: Run, small_set: Path, tmp_path: Path) -> None:
    result = run("rank", small_set, "--out", tmp_path / "nowhere" / "run.jsonl")

    assert result.exit_code == 2
    assert "its folder does not exist. Name another file with --out." in result.stderr
