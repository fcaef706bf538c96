"""How the runs of `make test-under-load` are written."""

from __future__ import annotations

import runpy
from pathlib import Path

from pegboard_bench import results, under_load_page

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "under_load.py"


def test_each_run_is_written_and_shown(tmp_path: Path) -> None:
    script = runpy.run_path(str(SCRIPT))
    runs = [script["Run"](60.0, 10, (), 0, 8.5), script["Run"](120.0, 9, (), 0, None)]
    script["write"](4, 6, runs, tmp_path)
    page = under_load_page.section(results.read(tmp_path / "under_load.json"))
    assert "| 1 | 10 | 0 | 1 | 8.5 |\n| 2 | 9 | 0 | 2 | 0.0 |" in page
