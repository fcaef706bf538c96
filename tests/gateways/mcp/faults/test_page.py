"""The page on faults: each of its rows names a test that there is, and every such test stands on it."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[3]
PAGE = (TESTS.parent / "docs" / "faults.md").read_text()
NAMED = re.compile(r"`(test_\w+)`")
ROW = re.compile(r"^\| (?!a server \||a client \|)[^-].*\|$", re.MULTILINE)


HERE = Path(__file__)


def defined(folder: Path) -> set[str]:
    files = (path for path in folder.rglob("test_*.py") if path != HERE)
    return {name for path in files for name in re.findall(r"def (test_\w+)\(", path.read_text())}


def test_each_row_names_a_test_and_every_test_of_a_fault_is_on_the_page() -> None:
    rows = ROW.findall(PAGE)
    assert len(rows) > 30
    assert [row for row in rows if len(NAMED.findall(row)) != 1] == []
    named = set(NAMED.findall(PAGE))
    assert sorted(named - defined(TESTS)) == []
    assert sorted(defined(HERE.parent) - named) == [], "add a row"
