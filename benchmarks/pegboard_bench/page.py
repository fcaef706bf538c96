"""Results as pages of the documentation: every figure on them comes from a results file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pegboard_bench import priced_page, rank_page, results, summaries_page, under_load_page, usage_page
from pegboard_bench.adapters import page as adapters_page
from pegboard_bench.agents import page as agents_page
from pegboard_bench.board import page as board_page
from pegboard_bench.bulk import page as bulk_page
from pegboard_bench.cache import page as cache_page
from pegboard_bench.coding_agents import page as coding_agents_page
from pegboard_bench.compat import page as compat_page
from pegboard_bench.control_tools import page as control_tools_page
from pegboard_bench.fleet import page as fleet_page
from pegboard_bench.fleet import searches_page
from pegboard_bench.headlines import HEADLINES, is_there
from pegboard_bench.hostile import page as hostile_page
from pegboard_bench.index import page as index_page
from pegboard_bench.langchain_own import page as langchain_own_page
from pegboard_bench.learning import page as gate_page
from pegboard_bench.llm import deferral_page
from pegboard_bench.llm import page as llm_page
from pegboard_bench.mcp import page as mcp_page
from pegboard_bench.no_match import page as no_match_page
from pegboard_bench.programs import page as programs_page
from pegboard_bench.result_shapes import page as result_shapes_page
from pegboard_bench.scale import page as scale_page
from pegboard_bench.scan import page as scan_page
from pegboard_bench.simulate import page as simulate_page
from pegboard_bench.skills import page as skills_page
from pegboard_bench.state import page as state_page
from pegboard_bench.tax import live_page
from pegboard_bench.tax import page as tax_page
from pegboard_bench.tenants import page as tenants_page
from pegboard_bench.users import page as users_page
from pegboard_bench.whole_tasks import page as tasks_page
from pegboard_bench.whole_tasks import progressive_page

SECTIONS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "tax": tax_page.section,
    "tasks": tasks_page.section,
    "tasks_progressive": progressive_page.section,
    "live": live_page.section,
    "rank": rank_page.section,
    "summaries": summaries_page.section,
    "mcp": mcp_page.section,
    "fleet": fleet_page.section,
    "searches": searches_page.section,
    "no_match": no_match_page.section,
    "llm": llm_page.section,
    "deferral": deferral_page.section,
    "cache": cache_page.section,
    "simulate": simulate_page.section,
    "priced": priced_page.section,
    "agents": agents_page.section,
    "adapters": adapters_page.section,
    "langchain_own": langchain_own_page.section,
    "coding_agents": coding_agents_page.section,
    "control_tools": control_tools_page.section,
    "gate": gate_page.section,
    "usage": usage_page.section,
    "index": index_page.section,
    "scale": scale_page.section,
    "bulk": bulk_page.section,
    "tenants": tenants_page.section,
    "board": board_page.section,
    "skills": skills_page.section,
    "state": state_page.section,
    "shaping": result_shapes_page.section,
    "programs": programs_page.section,
    "scan": scan_page.section,
    "hostile": hostile_page.section,
    "users": users_page.section,
    "compat": compat_page.section,
    "under_load": under_load_page.section,
}
OVERVIEW = """# Benchmarks

Each figure comes from a file in `bench/results`, which has many more; each study below is written by its own command
from its own file. `make bench` runs the first, `make bench-all` the others too ([how to run them](bench.md)). Times are
those of a shared machine: compare what was measured in turns, not a time with a time of another day.

## Ten figures

| figure | what it is | study | measured |
|---|---|---|---|
{headlines}

## By commit

The same figures, each time that they were measured; the date is that of the measurement. `bench/history.json` names the
commits (`make bench-history`).

![The ten figures at each measurement](benchmarks-history.svg)

## Studies

| study | measured | commit | machine | command |
|---|---|---|---|---|
{studies}
"""
MEASURED = "{date}, `{commit}`, {cores} cores ({cpu}), `{command}`"
STUDY = "| {where} | {date} | `{commit}` | {cores} cores, {cpu} | `{command}` |"
HEADING, LINK = re.compile(r"^#(#+ )", re.MULTILINE), re.compile(r"(\]\()([^)\s]+)(\))")
PAGE_NAMES = {"index": "vector-indexes"}
"""Of studies whose results have a name that no page may have."""


def write_page(page: Path, folder: Path) -> None:
    """Write the overview of all results files in a folder, and a page for each of them, in a folder beside it."""
    of_studies = page.with_suffix("")
    of_studies.mkdir(exist_ok=True)
    for name, text in studies(folder).items():
        (of_studies / f"{page_name(name)}.md").write_text(text, "utf-8")
    page.write_text(overview(folder, of_studies.name), "utf-8")


def overview(folder: Path, of_studies: str) -> str:
    """Ten figures, and the studies, whose pages are in a folder of that name beside this one."""
    found = _found(folder)
    titles = {name: _title(text) for name, text in _sections(folder).items()}

    def where(name: str) -> str:
        return f"[{titles[name]}]({of_studies}/{page_name(name)}.md)"

    def measured(name: str) -> dict[str, Any]:
        result = found[name]
        of = {"date": result["date"][:10], "commit": result["commit"][:12], "command": result["command"]}
        return of | {"cores": result["machine"]["cores"], "cpu": result["machine"]["cpu"]}

    shown = [each for each in HEADLINES if is_there(each, found)]
    headlines = [
        f"| {each.text(found[each.result]['figures'])} | {each.says} | {where(each.result)} "
        f"| {MEASURED.format(**measured(each.result))} |"
        for each in shown
    ]
    rows = [STUDY.format(where=where(name), **measured(name)) for name in titles]
    return OVERVIEW.format(headlines="\n".join(headlines), studies="\n".join(rows))


def studies(folder: Path) -> dict[str, str]:
    """The page of each results file in a folder, by its name."""
    sections = _sections(folder)
    places = {_anchor(_title(text)): page_name(name) for name, text in sections.items()}

    def moved(link: re.Match[str]) -> str:
        target = link[2]
        if target.removeprefix("#") in places and target.startswith("#"):
            target = f"{places[target.removeprefix('#')]}.md"
        elif not target.startswith(("#", "http:", "https:", "/")):
            target = f"../{target}"
        return f"{link[1]}{target}{link[3]}"

    return {name: HEADING.sub(r"\1", LINK.sub(moved, text)).strip() + "\n" for name, text in sections.items()}


def page_name(name: str) -> str:
    """The name of the page of a results file."""
    return PAGE_NAMES.get(name, name)


def _sections(folder: Path) -> dict[str, str]:
    """The text of each results file that is there, with headings from the second level on."""
    return {name: SECTIONS[name](result) for name, result in _found(folder).items()}


def _found(folder: Path) -> dict[str, dict[str, Any]]:
    files = {name: folder / f"{name}.json" for name in SECTIONS}
    return {name: results.read(path) for name, path in files.items() if path.exists()}


def _title(section: str) -> str:
    """The text of its first heading."""
    return section.partition("## ")[2].partition("\n")[0].strip()


def _anchor(title: str) -> str:
    """
    >>> _anchor("Learning: a neural gate, and a board's own requests")
    'learning-a-neural-gate-and-a-boards-own-requests'
    """
    return re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-")
