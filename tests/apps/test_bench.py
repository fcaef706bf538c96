from __future__ import annotations

import gzip
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from pegboard.catalog.ingest import read_catalog

Run = Callable[..., Result]
RunJson = Callable[..., Any]
SCRIPTED_SERVER = Path(__file__).parents[1] / "servers" / "scripted.py"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"own": {"command": sys.executable, "args": [str(SCRIPTED_SERVER)]}}}))
    return path


def test_what_servers_list_is_recorded_and_read_again(run_json: RunJson, config: Path, tmp_path: Path) -> None:
    file = tmp_path / "tools.jsonl.gz"
    report = run_json("bench", "record", "--config", config, "--out", file)
    live = run_json("audit", "--config", config)
    recorded = run_json("audit", "--catalog", file)

    assert report["tools"] == len(read_catalog(file)) == live["total_tools"]
    assert recorded["total_tokens"] == live["total_tokens"]
    assert gzip.decompress(file.read_bytes()).count(b"\n") == report["tools"]


def test_the_same_definitions_are_recorded_as_the_same_bytes(run: Run, config: Path, tmp_path: Path) -> None:
    for name in ("one.jsonl.gz", "two.jsonl.gz"):
        assert run("bench", "record", "--config", config, "--out", tmp_path / name).exit_code == 0

    assert (tmp_path / "one.jsonl.gz").read_bytes() == (tmp_path / "two.jsonl.gz").read_bytes()


def test_some_methods_on_one_testbed_are_measured_and_shown(run: Run, tmp_path: Path) -> None:
    words = ("bench", "--quick", "--set", "recorded", "--method", "full", "--method", "cli", "--out", tmp_path)
    result = run(*words)
    figures = json.loads((tmp_path / "tax-quick.json").read_text())["figures"]

    assert result.exit_code == 0, result.output
    assert "recorded: 76 tools" in result.stdout
    assert figures["tokens_per_turn/recorded/full/steady"] > figures["tokens_per_turn/recorded/cli/steady"]


def test_a_method_or_set_that_is_not_there_is_said_with_those_that_are(run: Run, tmp_path: Path) -> None:
    result = run("bench", "--quick", "--method", "magic", "--out", tmp_path)

    assert result.exit_code == 2
    assert "No method 'magic' is there. Use one of full, pruned" in result.stderr
    assert "No set 'moon' is there" in run("bench", "--quick", "--set", "moon", "--out", tmp_path).stderr


def test_what_cannot_be_done_together_is_said_before_anything_is_measured(run: Run, tmp_path: Path) -> None:
    quick = run("bench", "--quick", "--page", tmp_path / "page.md", "--out", tmp_path)
    model = run("bench", "--part", "model", "--out", tmp_path)

    assert (quick.exit_code, model.exit_code) == (2, 2)
    assert "A quick run writes no page. Leave out --page, or --quick." in quick.stderr
    assert "--model-url" in model.stderr
    assert not list(tmp_path.glob("*.json"))


def test_a_labelled_set_of_ones_own_is_measured_where_it_is_named(run: Run, tmp_path: Path) -> None:
    tools = [
        {"server": "desk", "name": "lamp_on", "description": "Switches the lamp on"},
        {"server": "desk", "name": "tide_next", "description": "When the next high tide comes"},
    ]
    queries = [{"id": "1", "query": "more light, please", "relevant": [["desk", "lamp_on"]]}]
    folder = tmp_path / "mine"
    folder.mkdir()
    for name, rows in (("catalog", tools), ("queries", queries)):
        lines = "\n".join(json.dumps(row) for row in rows)
        (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    result = run("bench", "--data", tmp_path, "--set", "mine", "--part", "frontier", "--out", tmp_path)
    figures = json.loads((tmp_path / "tax.json").read_text("utf-8"))["figures"]

    assert result.exit_code == 0, result.output
    assert figures["frontier_recall/mine/hybrid/500"] == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--set", "Mine"), "'Mine' is no name of a set."),
        (("--set", "recorded", "--page", "page.md"), "The page needs the testbed synthetic or real120."),
        (("--part", "tokens", "--part", "model"), "No model to ask."),
        (("--part", "tokens", "--model-url", "http://127.0.0.1:9/v1"), "The model would not be asked."),
        (("--finished", "--model-url", "http://127.0.0.1:9/v1"), "The model would not be asked."),
        (("--model-url", "http://127.0.0.1:9/v1", "--method", "ehrr"), "There is nothing to ask the model."),
    ],
)
def test_words_that_make_no_run_are_said_at_the_start(run: Run, tmp_path: Path, words: Any, said: str) -> None:
    result = run("bench", "--out", tmp_path, *words)

    assert result.exit_code == 2
    assert said in result.stderr
    assert not list(tmp_path.glob("*.json"))


@pytest.mark.requirement("library.own-data")
def test_a_set_of_ones_own_is_measured_by_every_method_and_written_to_a_page(
    run_json: RunJson, run: Run, cli_data: Path, tmp_path: Path
) -> None:
    shutil.copytree(cli_data / "small_set", tmp_path / "mine")
    words = ("bench", "--set", tmp_path / "mine", "--out", tmp_path / "results", "--page", tmp_path / "mine.md")
    report = run_json(*words)
    page = (tmp_path / "mine.md").read_text("utf-8")

    assert report["written"] == [str(tmp_path / "results" / "set_mine.json")]
    assert {"recall@5/hybrid", "mrr/attention", "ndcg@5/bm25f"} <= report["figures"][0].keys()
    assert page.startswith("# mine\n")
    assert "| `hybrid` |" in page
    assert "recall@5" in run(*words).stdout


def test_a_set_of_ones_own_and_others_are_two_runs(run: Run, cli_data: Path, tmp_path: Path) -> None:
    result = run("bench", "--set", cli_data / "small_set", "--set", "synthetic", "--out", tmp_path)

    assert result.exit_code == 2
    assert "two runs" in result.stderr
