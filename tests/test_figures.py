"""Every figure that somebody could have measured is read from a results file by the build, or says why it is none.

Left out are the pages of history: the changelog and the decisions, whose figures are of their day.
"""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
WRITTEN_WHOLE = ("api.md", "benchmarks.md", "cli.md", "conformance.md", "requirements.md")
"""Pages without a word by hand: their own tests compare them with what they are made from."""
PAGES = [
    ROOT / "README.md",
    *(path for path in sorted(DOCS.glob("*.md")) if path.name not in WRITTEN_WHOLE),
]
REWRITTEN = {"index"}
"""Results of commits that were rewritten before they came here: to be measured again, and not to grow more."""
RESULTS = sorted((ROOT / "bench" / "results").glob("*.json"))
BY_HAND = tomllib.loads((Path(__file__).parent / "figures_by_hand.toml").read_text("utf-8"))
"""The kinds of figures that no command measures: why, and by page which."""

NUMBER = r"(?<![\w.,#§/-])\$?\d[\d,]*(?:\.\d+)?"
UNIT = (
    r"\s?[%×]|\s?(?:ms|µs|s|[KMG]i?B)\b| of \d[\d,]*|"
    r"\s(?:seconds?|minutes?|hours?|tokens?|tools?|requests?|characters|bytes|points?)\b"
)
FIGURE = re.compile(rf"{NUMBER}(?:{UNIT})|(?<![\w.,#§/-])\$?\d+\.\d+(?![.\w])")
"""A number with a unit that something is measured in, or one with decimals."""
NOT_BY_HAND = re.compile(
    r"^```.*?^```"  # blocks of code and of output
    r"|<!-- generated: .*?<!-- end -->|<!-- figures -->.*?<!-- /figures -->|<!-- figure .*?<!-- /figure -->"
    r"|`[^`\n]*`|<!--.*?-->|\]\([^)]*\)",
    re.DOTALL | re.MULTILINE,
)


def by_hand(text: str) -> Iterator[tuple[int, str]]:
    """The line and the words of each figure that stands in a page without a source."""
    prose = NOT_BY_HAND.sub(lambda left: "`" + "\n" * left[0].count("\n"), text)
    for number, line in enumerate(prose.splitlines(), start=1):
        yield from ((number, found[0]) for found in FIGURE.finditer(line))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_figure_of_a_page_stands_alone(page: Path) -> None:
    name = page.relative_to(ROOT).as_posix()
    allowed = {figure for kind in BY_HAND.values() for figure in kind["pages"].get(name, ())}
    found = list(by_hand(page.read_text("utf-8")))

    assert [f"{name}:{line}: {figure}" for line, figure in found if figure not in allowed] == [], (
        "mark it, so that make_docs.py fills it in: <!-- figure FILE NAME FORMAT -->…<!-- /figure -->; "
        "or say in figures_by_hand.toml why nothing measures it"
    )
    assert allowed - {figure for _, figure in found} == set(), "figures_by_hand.toml has more than the page"


def test_reasons_are_for_pages_that_there_are() -> None:
    names = {page.relative_to(ROOT).as_posix() for page in PAGES}

    assert {page for kind in BY_HAND.values() for page in kind["pages"]} - names == set()
    assert all(kind["why"] for kind in BY_HAND.values())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It takes 12 ms and 1,234 tokens.", ["12 ms", "1,234 tokens"]),
        ("Recall is 93.6% (0.936), 14 of 15 runs.", ["93.6%", "0.936", "14 of 15"]),
        ("It saves <!-- figure tax saved .0% -->84%<!-- /figure --> at 3 × the speed.", ["3 ×"]),
        ("`--k 12 tools` [12 tools](page.md#12-tools) of 2026-11-25, HTTP/1.1, §5.3", ["12 tools"]),
        ("```console\n$ pegboard audit  # 12 tools\n```\n", []),
    ],
)
def test_what_counts_as_a_figure_by_hand(text: str, found: list[str]) -> None:
    assert [figure for _, figure in by_hand(text)] == found


@pytest.mark.parametrize("page", [*PAGES, *sorted((DOCS / "decisions").glob("*.md"))], ids=lambda page: page.name)
def test_no_line_begins_with_the_mark_of_a_figure(page: Path) -> None:
    """Markdown takes such a line for HTML, and the rest of it would not be formatted."""
    assert re.findall(r"^\s*<!-- figure .*", page.read_text("utf-8"), re.MULTILINE) == []


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_the_commits_of_results_are_in_the_history(path: Path) -> None:
    known = _commits()
    results = json.loads(path.read_text("utf-8"))
    parts = [results, *(table for table in results["tables"].values() if isinstance(table, dict) and "commit" in table)]

    unknown = [part["commit"] for part in parts if part["commit"].partition("-")[0] not in known]
    assert bool(unknown) == (path.stem in REWRITTEN), unknown


@cache
def _commits() -> frozenset[str]:
    """Every commit that HEAD descends from; a checkout without all of them says so and skips."""
    try:
        shallow = _git("rev-parse", "--is-shallow-repository")
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    if shallow == "true":
        pytest.skip("a shallow clone has not every commit")
    return frozenset(_git("rev-list", "HEAD").split())


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
