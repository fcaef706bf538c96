from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from pegboard.testing import FakeEncoder
from pegboard_bench import rank
from pegboard_bench.latency import Latency

TIMES = Latency(size=527, new=[2], encoder=[1], cached=[1], cold_index=1, warm_starts=[1])


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    """The benchmark with a fake encoder, and with times that nobody measured."""

    async def no_time(_data: Path | None) -> list[tuple[Latency, str]]:
        return [(TIMES, "synthetic")]

    monkeypatch.setattr(rank, "OnnxEncoder", FakeEncoder)
    monkeypatch.setattr(rank, "_latencies", no_time)
    monkeypatch.setenv("PEGBOARD_CACHE_DIR", str(tmp_path / "cache"))
    program = typer.Typer()
    program.command()(rank.main)
    return lambda *words: CliRunner().invoke(program, [*map(str, words), "--out", str(tmp_path / "results")])


def written(tmp_path: Path, name: str = "rank") -> dict[str, Any]:
    return dict(json.loads((tmp_path / "results" / f"{name}.json").read_text("utf-8")))


def test_sets_that_are_there_are_measured_and_written(
    benchmark: Callable[..., Result], data: Path, tmp_path: Path
) -> None:
    shutil.copytree(data / "cli" / "small_set", tmp_path / "data" / "mcpverse")
    result = benchmark("--data", tmp_path / "data", "--sets", "mcpverse,metatool")
    found = written(tmp_path)

    assert result.exit_code == 0, result.output
    assert "Not measured, for want of data: metatool" in result.stderr
    assert {
        f"recall@5/mcpverse/{method}" for method in ("bm25", "bm25f", "hybrid", "attention", "hybrid_without_clause")
    } <= set(found["figures"])
    assert found["figures"]["latency_over_encoder/527/new"] == 2
    assert found["tables"]["sets"]["mcpverse"]["queries"] == 7
    assert "recall@5, hybrid over" in result.stdout


def test_without_data_it_says_what_is_missing_and_measures_time_into_a_file_of_its_own(
    benchmark: Callable[..., Result], tmp_path: Path
) -> None:
    result = benchmark()

    assert result.exit_code == 0, result.output
    assert "Set PEGBOARD_DATA to their folder" in " ".join(result.stderr.split())
    assert set(written(tmp_path, "rank-synthetic")["figures"]) == set(TIMES.figures())
    assert not (tmp_path / "results" / "rank.json").exists()


def test_the_timed_texts_come_from_every_kind_of_query() -> None:
    texts = rank._spread([str(number) for number in range(1000)])

    assert 200 <= len(texts) <= 300
    assert texts[0] == "0"
    assert int(texts[-1]) > 900
