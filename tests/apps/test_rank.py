from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from pegboard.apps.cli import atomic_files

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


def test_a_file_that_cannot_be_written_whole_stays_as_it_was(
    run: Run, small_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run.jsonl"
    out.write_text("of an earlier run")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic_files.os, "fsync", full)
    result = run("rank", small_set, "--profile", "keyword", "--out", out)

    assert result.exit_code == 2
    assert "No space left on device" in result.stderr
    assert out.read_text() == "of an earlier run"
    assert list(tmp_path.glob(".run.jsonl*")) == []


@pytest.mark.requirement("library.own-data")
def test_a_score_has_intervals_and_the_worst_queries(run_json: RunJson, small_set: Path) -> None:
    report = run_json("rank", small_set, "--score", "--ungated", "--worst", 2)

    assert set(report["means"]) >= {"recall@1", "recall@5", "recall@10", "mrr", "ndcg@5"}
    assert all(each["low"] <= each["mean"] <= each["high"] for each in report["means"].values())
    assert len(report["worst"]) <= 2
    assert all(each["recall@5"] < 1 and each["wanted"] for each in report["worst"])


def test_a_score_is_that_of_the_rankings_that_were_written(run_json: RunJson, small_set: Path, tmp_path: Path) -> None:
    report = run_json("rank", small_set, "--out", tmp_path / "run.jsonl", "--score", "--ungated")
    lines = gzip.decompress((small_set / "queries.jsonl.gz").read_bytes()).decode().splitlines()
    wanted = {row["id"]: row for row in map(json.loads, lines)}
    ranked = rankings(tmp_path / "run.jsonl")
    first = {key: next(iter(tools)) for key, tools in ranked.items()}
    single = [row for row in wanted.values() if len(row["relevant"]) == 1 and not row.get("any_of")]

    assert report["queries"] == len(wanted)
    assert single
    hits = sum(first[row["id"]] == "/".join(row["relevant"][0]) for row in single)
    assert report["means"]["recall@1"]["mean"] >= hits / len(wanted) - 1e-4


def test_a_set_may_be_plain_files(run_json: RunJson, tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text(
        json.dumps([{"name": "tide", "description": "When the tide comes"}, {"name": "wind", "description": "Wind"}])
    )
    query = {"id": "1", "query": "when is high tide?", "relevant": [["tools", "tide"]]}
    (tmp_path / "queries.jsonl").write_text(json.dumps(query) + "\n")

    assert run_json("rank", tmp_path, "--score")["means"]["recall@1"]["mean"] == 1


def test_people_see_the_table_and_the_worst_queries(run: Run, small_set: Path) -> None:
    result = run("rank", small_set, "--score", "--profile", "keyword")

    assert result.exit_code == 0, result.output
    assert "95% interval" in result.stdout
    assert "ndcg@5" in result.stdout


def test_rankings_that_go_nowhere_are_refused(run: Run, small_set: Path) -> None:
    result = run("rank", small_set)

    assert result.exit_code == 2
    assert "--score" in result.stderr
