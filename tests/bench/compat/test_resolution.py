"""`pegboard_bench.compat`: what is told from pip's reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pegboard_bench import results
from pegboard_bench.compat.core import megabytes
from pegboard_bench.compat.page import section
from pegboard_bench.compat.resolution import (
    Downgrade,
    Resolution,
    conflicts,
    downgraded,
    read_report,
    reason,
    refusals,
)

RESULTS = Path(__file__).parents[3] / "bench" / "results"


def report(*packages: tuple[str, str, list[str]]) -> dict[str, Any]:
    metadata = [{"name": name, "version": version, "requires_dist": needs} for name, version, needs in packages]
    return {"version": "1", "install": [{"metadata": each} for each in metadata]}


def test_a_package_that_is_older_beside_pegboard_is_named_with_both_versions() -> None:
    alone = read_report(report(("Agent_Kit", "2.0", []), ("anyio", "4.10", [])))
    beside = read_report(report(("agent-kit", "2.0", []), ("anyio", "4.9", []), ("pegboard", "0.1.0", [])))

    assert downgraded(alone, beside) == (Downgrade(package="anyio", alone="4.10", beside="4.9"),)


def test_a_package_that_pip_refuses_alone_too_is_not_refused_because_of_pegboard() -> None:
    fine, bad = Resolution(), Resolution(refused="No matching distribution")

    assert refusals({"a": bad, "b": bad, "c": fine}, {"a": fine, "b": bad, "c": fine}) == ["a"]


def test_packages_whose_ranges_no_seen_version_satisfies_exclude_each_other() -> None:
    alone = {
        "old": read_report(report(("old", "1", ["mcp<2"]), ("mcp", "1.9", []))),
        "new": read_report(report(("new", "1", ["mcp>=2"]), ("mcp", "2.3", []))),
        "any": read_report(report(("any", "1", ["mcp", "x<1; extra == 'more'"]), ("mcp", "2.3", []))),
        "mcp": read_report(report(("mcp", "2.3", []))),
    }

    assert conflicts(alone) == [("mcp", "old", "mcp"), ("new", "old", "mcp")]


def test_the_reason_is_pips_first_error() -> None:
    assert reason("WARNING: slow\nERROR: Cannot install a and b\nERROR: see docs") == "Cannot install a and b"


def test_the_size_of_an_environment_leaves_out_what_each_one_has(tmp_path: Path) -> None:
    for name in ("pip", "pip-26.dist-info", "numpy"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "module.py").write_bytes(b"x" * 2**20)

    assert megabytes(tmp_path) == pytest.approx(1.0, abs=0.1)


@pytest.mark.requirement("library.compat")
def test_none_of_forty_packages_for_agents_is_refused_or_made_older_by_pegboard() -> None:
    found = results.read(RESULTS / "compat.json")

    assert found["figures"]["packages"] >= 40
    assert found["figures"]["refused"] == 0
    assert found["figures"]["downgraded"] == 0
    assert "| langchain |" in section(found)
