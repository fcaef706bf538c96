from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from pegboard.apps.cli import atomic_files
from pegboard.retrieval.local_fit import LocalFit
from pegboard.testing import FakeEncoder

Run = Callable[..., Result]
RunJson = Callable[..., Any]
Ask = Callable[..., Path]

WAYS = ("please {}", "can you {} for me", "I need to {} now")


@pytest.fixture
def rows(tools: Path) -> list[dict[str, Any]]:
    """Three requests for each of the twelve tools, in the words of its description."""
    listed = [json.loads(line) for line in tools.read_text().splitlines()]
    asked = [(way.format(tool["description"]), [tool["server"], tool["name"]]) for way in WAYS for tool in listed]
    return [
        {"id": str(number), "query": text, "relevant": [tool], "called": [tool]}
        for number, (text, tool) in enumerate(asked)
    ]


@pytest.fixture
def ask(machine: Path, rows: list[dict[str, Any]]) -> Ask:
    """A file of the first so many requests."""

    def write(count: int = 36) -> Path:
        path = machine / "queries.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows[:count]))
        return path

    return write


def test_what_was_fitted_is_written_and_used_by_route(
    run: Run, run_json: RunJson, ask: Ask, tools: Path, machine: Path
) -> None:
    report = run_json("calibrate", "--queries", ask(), "--catalog", tools)
    fitted = LocalFit.read(machine / "calibration.json")

    assert (report["queries"], report["tools"], report["folds"], report["out"]) == (36, 12, 5, "calibration.json")
    assert fitted.encoder == FakeEncoder.model
    assert set(fitted.fusions) == {name for name, each in report["fusions"].items() if each["kept"] == "new"}
    assert "hybrid" in fitted.fusions
    (machine / "pegboard.toml").write_text('calibration = "calibration.json"\n')
    words = ("route", "warnings of storms", "--catalog", tools)
    plain = run_json(*words)["candidates"][0]
    better = run_json(*words, "--config", machine / "pegboard.toml")["candidates"][0]
    assert (better["tool"], better["parts"]) == (plain["tool"], plain["parts"])
    assert better["score"] > plain["score"]


def test_the_curve_has_every_threshold_and_its_best_is_the_best_f1(run_json: RunJson, ask: Ask, tools: Path) -> None:
    report = run_json("calibrate", "--queries", ask(), "--catalog", tools, "--dry-run", "--k", 3)["threshold"]
    curve = {point["theta"]: point for point in report["curve"]}

    assert len(curve) == 21
    assert report["best"] == max(curve, key=lambda theta: curve[theta]["f1"])
    assert report["before"] == 0.28
    assert max(point["tools"] for point in curve.values()) <= 3


def test_every_figure_stands_before_and_after(run_json: RunJson, ask: Ask, tools: Path) -> None:
    report = run_json("calibrate", "--queries", ask(), "--catalog", tools, "--dry-run")

    for each in report["fusions"].values():
        assert set(each["before"]) == set(each["after"]) == {"recall@5", "mrr", "log_loss", "ece"}
        surely_less = each["gains"]["log_loss"][1] > 0 and each["after"]["recall@5"] >= each["before"]["recall@5"]
        assert each["kept"] == ("new" if surely_less else "old")


def test_the_same_requests_give_the_same_calibration(run_json: RunJson, ask: Ask, tools: Path, machine: Path) -> None:
    config = machine / "pegboard.toml"
    config.write_text('calibration = "calibration.json"\n')
    (machine / "calibration.json").write_text("of an earlier run, and never read")
    words = ("calibrate", "--queries", ask(), "--catalog", tools, "--config", config)
    first, second = run_json(*words), run_json(*words)

    assert first == second
    assert first["out"] == str(machine / "calibration.json")


def test_observed_calls_teach_as_labels_do(run_json: RunJson, ask: Ask, tools: Path) -> None:
    words = ("--catalog", tools, "--dry-run")

    assert run_json("calibrate", "--observed", ask(), *words) == run_json("calibrate", "--queries", ask(), *words)


def test_a_dry_run_writes_nothing(run: Run, ask: Ask, tools: Path, machine: Path) -> None:
    result = run("calibrate", "--queries", ask(), "--catalog", tools, "--dry-run")

    assert result.exit_code == 0, result.output
    assert "Dry run: nothing was written" in result.stdout
    assert not (machine / "calibration.json").exists()


def test_people_see_the_curve_both_fusions_and_where_the_file_is(
    run: Run, ask: Ask, tools: Path, tmp_path: Path
) -> None:
    result = run("calibrate", "--queries", ask(), "--catalog", tools, "--out", tmp_path / "here.json")

    assert result.exit_code == 0, result.output
    assert "36 requests over 12 tools" in result.stdout
    assert "Best θ: " in result.stdout
    assert "Fusion of hybrid, on unseen requests" in result.stdout
    assert 'calibration = "here.json"' in result.stdout
    assert (tmp_path / "here.json").is_file()


def test_too_few_requests_are_refused_and_nothing_is_written(run: Run, ask: Ask, tools: Path, machine: Path) -> None:
    result = run("calibrate", "--queries", ask(19), "--catalog", tools)

    assert result.exit_code == 2
    assert "Only 19 of 19 queries are usable, and a calibration needs at least 20. Label more" in result.stderr
    assert not (machine / "calibration.json").exists()


@pytest.mark.parametrize("files", [(), ("--queries", "a.jsonl", "--observed", "b.jsonl")])
def test_there_is_exactly_one_file_to_learn_from(run: Run, tools: Path, files: tuple[str, ...]) -> None:
    result = run("calibrate", *files, "--catalog", tools)

    assert result.exit_code == 2
    assert "Give either --queries FILE or --observed FILE." in result.stderr


def test_a_file_that_cannot_be_written_is_found_out_before_the_work(
    run: Run, ask: Ask, tools: Path, machine: Path, encoder: FakeEncoder
) -> None:
    result = run("calibrate", "--queries", ask(), "--catalog", tools, "--out", machine / "nowhere" / "c.json")

    assert result.exit_code == 2
    assert "its folder does not exist. Name another file with --out." in result.stderr
    assert encoder.encoded == []


def test_a_file_that_cannot_be_written_whole_stays_as_it_was(
    run: Run, ask: Ask, tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "here.json"
    out.write_text("of an earlier run")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic_files.os, "fsync", full)
    result = run("calibrate", "--queries", ask(), "--catalog", tools, "--out", out)

    assert result.exit_code == 2
    assert "No space left on device" in result.stderr
    assert out.read_text() == "of an earlier run"
    assert list(tmp_path.glob(".here.json*")) == []


def test_help_shows_what_a_line_of_each_file_looks_like(run: Run) -> None:
    result = run("calibrate", "--help")

    assert '"relevant": [["github", "create_issue"]]' in result.stdout
    assert '"called":' in result.stdout


def test_without_any_tools_it_is_said_which_server_did_not_answer(
    run: Run, ask: Ask, servers_file: Callable[..., Path]
) -> None:
    config = servers_file(broken={"command": "no-such-program-anywhere"})
    result = run("calibrate", "--queries", ask(), "--config", config)

    assert result.exit_code == 1
    assert "There are no tools to calibrate for." in result.stderr
    assert "'broken'" in result.stderr
    assert "`pegboard doctor`" in result.stderr


def test_live_servers_are_calibrated_for_and_the_file_lies_beside_their_configuration(
    run_json: RunJson, machine: Path, servers_file: Callable[..., Path], scripted: dict[str, Any]
) -> None:
    config = servers_file("project/servers.json", live=scripted)
    queries = machine / "queries.jsonl"
    tool = run_json("route", "x", "--config", config)["candidates"][0]
    row = {"relevant": [[tool["server"], tool["name"]]]}
    lines = (json.dumps(row | {"id": str(n), "query": f"{n} {tool['name']} {tool['server']}"}) for n in range(24))
    queries.write_text("\n".join(lines))
    report = run_json("calibrate", "--queries", queries, "--config", config)

    assert report["queries"] == 24
    assert report["out"] in (None, str(machine / "project" / "calibration.json"))
    assert (machine / "project" / "calibration.json").exists() == (report["out"] is not None)
