"""SECURITY.md and docs/faults.md name the tests that show each defence; those tests are there."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DEFINED = re.compile(r"^\s*(?:async )?def (test_\w+)\(", re.MULTILINE)
NAMED = re.compile(r"`(test_\w+)`")
PAGES = (ROOT / "SECURITY.md", ROOT / "docs" / "faults.md")
ROW = re.compile(r"^\| (?!who |---)(?P<cells>.+) \|$", re.MULTILINE)


@cache
def existing() -> frozenset[str]:
    texts = (path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    return frozenset(name for text in texts for name in DEFINED.findall(text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_test_that_a_page_names_exists(page: Path) -> None:
    named = set(NAMED.findall(page.read_text("utf-8")))

    assert named
    assert sorted(named - existing()) == []


def test_every_threat_says_who_what_and_which_defence_and_names_a_test() -> None:
    threats = [row["cells"].split(" | ") for row in ROW.finditer((ROOT / "SECURITY.md").read_text("utf-8"))]

    assert threats
    for cells in threats:
        assert len(cells) == 4, cells
        assert NAMED.search(cells[3]), cells
