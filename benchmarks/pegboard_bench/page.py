"""Results as a page of the documentation: every figure on it comes from a results file."""

from __future__ import annotations

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
HEAD = """# Benchmarks

Each section is written by its own command from its own file in `bench/results`, which has every figure and more.
`make bench` runs the first, `make bench-all` the others too. Times are those of a shared machine: compare what was
measured in turns, not a time with a time of another day.
"""


def whole(folder: Path) -> str:
    """The page of all results files in a folder."""
    files = {name: folder / f"{name}.json" for name in SECTIONS}
    return "\n".join([HEAD, *(SECTIONS[name](results.read(path)) for name, path in files.items() if path.exists())])


def write_page(page: Path, folder: Path) -> None:
    page.write_text(whole(folder), "utf-8")
