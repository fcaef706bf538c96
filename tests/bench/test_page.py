from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pegboard_bench import results
from pegboard_bench.headlines import HEADLINES, is_there
from pegboard_bench.history import KEPT, gathered, name_of
from pegboard_bench.page import overview, page_name, studies, write_page

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "bench" / "results"


def test_there_is_a_page_for_each_results_file_that_is_there(tmp_path: Path) -> None:
    shutil.copy(RESULTS / "rank.json", tmp_path)
    page = overview(tmp_path, "studies")

    assert page.startswith("# Benchmarks\n")
    assert "[Ranking](studies/rank.md)" in page
    assert "A hop through the MCP gateway" not in page
    assert studies(tmp_path)["rank"].startswith("# Ranking\n")


def test_headings_and_links_are_those_of_a_page_in_a_folder() -> None:
    pages = studies(RESULTS)

    assert "\n## What to conclude\n" in pages["tax"]
    assert "](../bench.md)" in pages["tax"]
    assert "](rank.md)" in pages["tax"]
    assert "](../reliability.svg)" in pages["rank"]
    assert page_name("index") != "index", "a folder's index is another page"


def test_writing_writes_the_overview_and_every_study(tmp_path: Path) -> None:
    write_page(tmp_path / "page.md", RESULTS)

    assert (tmp_path / "page.md").read_text("utf-8") == overview(RESULTS, "page")
    written = {path.stem: path.read_text("utf-8") for path in (tmp_path / "page").iterdir()}
    assert written == {page_name(name): text for name, text in studies(RESULTS).items()}


def test_every_headline_is_measured_and_in_the_history() -> None:
    found = {path.stem: results.read(path) for path in RESULTS.glob("*.json")}
    history = json.loads((ROOT / KEPT).read_text("utf-8"))

    assert [each.title for each in HEADLINES if not is_there(each, found)] == []
    for each in HEADLINES:
        at, commit, value = history[name_of(each)][-1]
        of = found[each.result]
        assert (at, value) == (of["date"], of["figures"][each.figure]), "run make bench-history"
        assert of["commit"].startswith(commit)


@pytest.mark.usefixtures("history_of_two")
def test_the_history_has_each_measurement_once_and_keeps_what_a_clone_lacks(tmp_path: Path) -> None:
    before = {"rank/recall@5/livemcp_steps/hybrid": [["2026-01-01T00:00:00+00:00", "0" * 12, 0.1]]}
    history = gathered(tmp_path, before)

    assert history["rank/recall@5/livemcp_steps/hybrid"] == [
        ("2026-01-01T00:00:00+00:00", "0" * 12, 0.1),
        ("2026-01-02T00:00:00+00:00", "a" * 12, 0.2),
        ("2026-01-03T00:00:00+00:00", "b" * 12, 0.3),
    ]
    assert history["scale/p50_ms/search/1000000"] == []


@pytest.fixture
def history_of_two(tmp_path: Path) -> None:
    """A repository in which one results file was written twice."""
    from subprocess import run

    def git(*arguments: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    path = tmp_path / "bench" / "results" / "rank.json"
    path.parent.mkdir(parents=True)
    git("init", "--quiet")
    for day, commit, value in (("2026-01-02", "a" * 40, 0.2), ("2026-01-03", "b" * 40 + "-dirty", 0.3)):
        figures = {"recall@5/livemcp_steps/hybrid": value}
        path.write_text(json.dumps({"date": f"{day}T00:00:00+00:00", "commit": commit, "figures": figures}), "utf-8")
        git("add", ".")
        git("commit", "--quiet", "-m", day)
