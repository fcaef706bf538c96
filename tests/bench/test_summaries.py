from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from pegboard.compose import default_parts
from pegboard.evaluation import ranking_metrics
from pegboard.evaluation.datasets import read_set
from pegboard.evaluation.summary_quality import THRESHOLDS, retrieval
from pegboard.settings import Settings
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder
from pegboard_bench import summaries, summaries_page
from pegboard_bench.page import studies


def test_f1_is_the_harmonic_mean_of_precision_and_recall() -> None:
    precision, recall = 2 / 5, 2 / 3

    assert ranking_metrics.f1([0, 4, 7], 3, 5) == pytest.approx(2 * precision * recall / (precision + recall))
    assert ranking_metrics.f1([], 1, 0) == 0


async def test_retrieval_ranks_by_the_summaries_that_the_catalog_has(data: Path, tmp_path: Path) -> None:
    dataset = read_set(data / "cli" / "small_set")
    settings = Settings(cache_dir=tmp_path, profile="hybrid", recall=0.5)
    parts = default_parts(settings, encoder=FakeEncoder(), embeddings=MemoryEmbeddings())
    answers = {query.relevant[0]: query.text for query in dataset.queries}
    told = summaries._with(dataset.catalog, lambda tool, _: answers.get(tool.id, tool.name))
    dumb = summaries._with(dataset.catalog, lambda tool, _: "x")
    done: list[int] = []
    best = await retrieval(told, dataset.queries, settings, parts, lambda each, _: done.append(each))
    worst = await retrieval(dumb, dataset.queries, settings, parts, lambda *_: None)

    assert best.mean("mrr") == 1
    assert best.gain(worst, "mrr").low > 0
    assert best.theta in THRESHOLDS
    assert best.f1 > worst.f1
    assert done == list(range(1, 8))


def benchmark(*words: object) -> Result:
    program = typer.Typer()
    program.command()(summaries.main)
    return CliRunner().invoke(program, [*map(str, words)])


def test_without_data_it_says_so_and_writes_nothing(tmp_path: Path) -> None:
    result = benchmark("--out", tmp_path)

    assert result.exit_code == 0
    assert "Set PEGBOARD_DATA to their folder" in " ".join(result.stderr.split())
    assert not list(tmp_path.iterdir())


def test_one_command_writes_the_figures_and_their_section(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summaries, "OnnxEncoder", FakeEncoder)
    monkeypatch.setenv("PEGBOARD_CACHE_DIR", str(tmp_path / "cache"))
    shutil.copytree(data / "cli" / "small_set", tmp_path / "data" / "mcpverse")
    result = benchmark("--data", tmp_path / "data", "--out", tmp_path, "--page", tmp_path / "page.md")
    found = json.loads((tmp_path / "summaries.json").read_text("utf-8"))

    assert result.exit_code == 0, result.output
    assert "Not measured, for want of data: livemcp_tasks, metatool, real120" in " ".join(result.stderr.split())
    assert {f"tokens/mcpverse/{text}" for text in ("description", "default", "rule")} <= set(found["figures"])
    assert (tmp_path / "page" / "summaries.md").read_text("utf-8") == studies(tmp_path)["summaries"]
    assert "12 tools, 7 queries." in summaries_page.section(found)
