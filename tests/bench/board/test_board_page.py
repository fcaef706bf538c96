"""`pegboard_bench.board`: its boards, and its section of the page."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np

from pegboard_bench import results
from pegboard_bench.board.drawn_vectors import DrawnVectors
from pegboard_bench.board.one_board import changed
from pegboard_bench.board.page import section
from pegboard_bench.board.tool_sets import made

RESULTS = Path(__file__).parents[3] / "bench" / "results"


def test_made_tools_are_as_many_as_asked_for_and_all_different() -> None:
    assert len({tool.id for tool in made(3000)}) == 3000


def test_drawn_vectors_are_the_same_for_the_same_text() -> None:
    one, other, again = asyncio.run(DrawnVectors().encode(["tide", "wind", "tide"]))

    assert np.array_equal(one, again)
    assert abs(float(one @ other)) < 0.3
    assert np.isclose(np.linalg.norm(one), 1)


def test_a_small_board_has_every_figure() -> None:
    found = changed(30, None)

    assert {"add_ms", "change_ms", "remove_ms", "route_ms", "first_ms", "rss_mb", "peak_mb", "search_ms"} < found.keys()
    assert found["tools"] == 30
    assert min(found.values()) > 0


def test_the_section_has_the_figures_of_the_file() -> None:
    kept = results.read(RESULTS / "board.json")
    text = section(kept)

    assert text.startswith("## Boards that change\n")
    assert f"| {kept['figures']['add_ms/10000']:,.0f} |" in text
