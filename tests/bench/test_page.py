from __future__ import annotations

import shutil
from pathlib import Path

from pegboard_bench.page import whole, write_page

RESULTS = Path(__file__).parents[2] / "bench" / "results"


def test_a_page_has_a_section_for_each_results_file_that_is_there(tmp_path: Path) -> None:
    shutil.copy(RESULTS / "rank.json", tmp_path)
    page = whole(tmp_path)

    assert page.startswith("# Benchmarks\n")
    assert "\n## Ranking\n" in page
    assert "\n## A hop through the MCP gateway\n" not in page


def test_writing_the_page_writes_all_of_it(tmp_path: Path) -> None:
    write_page(tmp_path / "page.md", RESULTS)

    assert (tmp_path / "page.md").read_text("utf-8") == whole(RESULTS)
