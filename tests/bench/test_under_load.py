"""How the runs of `make test-under-load` are written."""

from __future__ import annotations

import runpy
from pathlib import Path

from pegboard_bench import page, results, under_load_page

SCRIPT = Path(__file__).parents[2] / "scripts" / "under_load.py"


def test_runs_in_a_row_are_written_and_shown_and_a_failure_ends_the_row(tmp_path: Path) -> None:
    script = runpy.run_path(str(SCRIPT))

    def write(seconds: float, tests: int, failed: tuple[str, ...] = ()) -> None:
        script["write"](4, 6, script["Run"](seconds, tests, failed, int(bool(failed)), 8.5), tmp_path)

    write(60.0, 11, ("tests.test_a::test_b",))
    assert not (tmp_path / "under_load.json").exists()
    write(60.0, 10)
    write(120.0, 9)
    kept = results.read(tmp_path / "under_load.json")
    assert kept["figures"] == {"runs": 2, "least_tests": 9}
    section = under_load_page.section(kept)
    assert "| 10 | 0 | 1 | 6 | 4 | 8.5 |" in section
    assert "| 9 | 0 | 2 | 6 | 4 | 8.5 |" in section
    script["show"](tmp_path / "benchmarks.md", tmp_path)
    assert (tmp_path / "benchmarks" / "under_load.md").read_text("utf-8") == page.studies(tmp_path)["under_load"]
    write(60.0, 11, ("tests.test_a::test_b",))
    script["show"](tmp_path / "benchmarks.md", tmp_path)
    assert not (tmp_path / "under_load.json").exists()
    assert not (tmp_path / "benchmarks" / "under_load.md").exists()
