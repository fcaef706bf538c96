"""The documentation says what is: its Python runs, its generated parts are up to date, its links lead somewhere."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from pegboard_bench.page import overview, page_name, studies

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?://)([^)#]+)(?:#([^)]+))?\)")
HOW_TO_WRITE = "run make bench, or pegboard_bench.page.write_page"
ELSEWHERE = ("adapters.md", "llm-gateway.md", "tutorial.md")
"""The first one's code needs agent frameworks, and runs in tests/adapters/test_frameworks.py; the second one's needs a
gateway, and runs in tests/gateways/llm/test_guide.py; the third one's needs servers, and runs in
tests/test_tutorial.py."""
BLOCKS = [
    pytest.param(block, id=f"{page.name}-{number}")
    for page in PAGES
    if page.name not in ELSEWHERE
    for number, block in enumerate(BLOCK.findall(page.read_text()), start=1)
]


@pytest.mark.parametrize("block", BLOCKS)
def test_python_in_the_documentation_runs(block: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PEGBOARD_CACHE_DIR", str(tmp_path))
    exec(compile(block, "documentation", "exec"), {"__name__": "documentation"})  # noqa: S102 - that is the test


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_within_the_repository_lead_somewhere(page: Path) -> None:
    for target, anchor in LINK.findall(page.read_text()):
        file = (page.parent / target).resolve()
        assert file.exists(), f"{page.name} links to {target}"
        if anchor and file.suffix == ".md":
            headings = {
                re.sub(r"[^\w\- ]", "", line.lstrip("# ")).strip().lower().replace(" ", "-")
                for line in file.read_text().splitlines()
                if line.startswith("#")
            }
            assert anchor in headings, f"{page.name} links to {target}#{anchor}"


def test_the_figures_of_the_benchmark_pages_are_those_of_the_results_files() -> None:
    results = ROOT / "bench" / "results"
    pages = {path.name: path.read_text() for path in (ROOT / "docs" / "benchmarks").glob("*.md")}
    assert pages == {f"{page_name(name)}.md": text for name, text in studies(results).items()}, HOW_TO_WRITE
    assert (ROOT / "docs" / "benchmarks.md").read_text() == overview(results, "benchmarks"), HOW_TO_WRITE


def test_generated_pages_are_what_the_program_says_of_itself() -> None:
    docs = runpy.run_path(str(ROOT / "scripts" / "make_docs.py"))

    assert [path.name for path in docs["out_of_date"]()] == [], "run python scripts/make_docs.py"


def test_pictures_are_what_the_results_say() -> None:
    pictures = runpy.run_path(str(ROOT / "scripts" / "draw_pictures.py"))

    assert [path.name for path in pictures["out_of_date"]()] == [], "run python scripts/draw_pictures.py"


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    listed = set(re.findall(r"[\w/.-]+\.md", (ROOT / "mkdocs.yml").read_text("utf-8")))
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}

    assert pages - listed == set()
