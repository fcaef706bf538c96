from __future__ import annotations

from pathlib import Path

import pytest

from pegboard_bench import latency
from pegboard_bench.latency import Latency


def test_figures_are_medians_and_the_ratio_is_of_medians() -> None:
    figures = Latency(
        size=527, new=[9, 8, 30], encoder=[6, 7, 6], cached=[1, 2, 3], cold_index=4_000, warm_starts=[700, 900, 800]
    ).figures()

    assert figures == {
        "latency_p50_ms/527/new": 9,
        "latency_p50_ms/527/cached": 2,
        "latency_over_encoder/527/new": 9 / 6,
        "latency_minus_encoder_ms/527/new": 3,
        "encoder_p50_ms/527": 6,
        "cold_index_s/527": 4,
        "index_ms_per_vector/527": 4_000 / (2 * 527),
        "warm_start_ms/527": 800,
    }


def test_a_warm_start_that_fails_is_no_figure(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError, match="warm start failed"):
        latency.warm_start(tmp_path / "nowhere.jsonl", tmp_path, "anything")
    assert "nowhere.jsonl" in capfd.readouterr().err
