"""The benchmark of growing boards, on a small one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pegboard import ToolId
from pegboard_bench.index.vectors import Vectors
from pegboard_bench.scale import growth, page
from pegboard_bench.scale.__main__ import enter
from pegboard_bench.scale.measure import Oracle, blocks, measure, unit

DRAW = np.random.default_rng(0)
MODELS = Vectors(
    ids=[ToolId(f"server {number % 30}", f"tool {number}") for number in range(90)],
    rows=unit(DRAW, 90, 16),
    queries=unit(DRAW, 5, 16),
)


async def test_a_small_board_is_searched_exactly_and_shows_its_changes() -> None:
    found = await measure(MODELS, 400, seed=1, sustained_s=0.1)

    assert (found.recall, found.recall_few_servers, found.lists) == (1.0, 1.0, 0)
    assert len(found.search_ms) == len(MODELS.queries)
    assert len(found.sustained_ms) == 4
    assert all(alone < visible for alone, visible in zip(found.add_alone_ms, found.add_ms, strict=True))
    assert all(alone < visible for alone, visible in zip(found.remove_alone_ms, found.remove_ms, strict=True))
    figures: dict[str, float] = {}
    enter(figures, 400, found)
    tables = {"sizes": [400], "load": 1.0, "real": 90, "queries": 5, "exact_up_to": 20_000, "changes": 1, "searches": 1}
    said = {"command": "make bench-scale", "date": "2026-11-24", "commit": "0" * 40}
    machine = {"cores": 1, "cpu": "x", "python": "3.11"}
    shown = page.section(said | {"machine": machine, "figures": figures, "tables": tables | {"seconds": 0.1}})
    assert "| 400 |" in shown
    assert growth.PICTURE not in shown


def test_all_tools_of_a_board_are_different_and_the_real_ones_are_first() -> None:
    ids = [tool for some, _ in blocks(MODELS, 400, seed=1) for tool in some]

    assert len(set(ids)) == 400
    assert ids[:90] == MODELS.ids


def test_the_oracle_keeps_the_best_over_all_blocks() -> None:
    oracle = Oracle(MODELS.queries)
    for start in range(0, 90, 30):
        oracle.see(MODELS.ids[start : start + 30], MODELS.rows[start : start + 30])

    best = np.argsort(-(MODELS.queries @ MODELS.rows.T), axis=1)[:, :10]
    assert oracle.recall([[MODELS.ids[place] for place in row] for row in best]) == 1.0


def test_the_growth_is_drawn_and_a_line_that_grows_with_the_board_has_the_slope_one(tmp_path: Path) -> None:
    sizes = [1_000, 10_000, 100_000]
    figures = {f"p50_ms/{name}/{size}": 2.0 for name in growth.LINES for size in sizes}
    figures |= {f"p50_ms/search/{size}": size / 1_000 for size in sizes}

    growth.draw(figures, sizes, tmp_path)

    assert growth.slope(figures, "search", sizes) == pytest.approx(1.0)
    assert growth.slope(figures, "add_alone", sizes) == pytest.approx(0.0)
    assert "<svg" in (tmp_path / growth.PICTURE).read_text("utf-8")
