"""How old each results file is: which commits have changed what it measures since its own.

    python -m pegboard_bench.results_age             # a table; --strict: fail unless every file is of the code at hand
    python -m pegboard_bench.results_age rank llm    # these files alone

A results file whose commit is not in this repository, or whose sources differed from it, cannot be made again: that is
said too.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from pegboard_bench import results

ROOT = Path(__file__).parents[2]
RANKING = ("src/pegboard/catalog", "src/pegboard/retrieval", "src/pegboard/routing", "src/pegboard/compose")
MODELS = ("src/pegboard/gateways/llm", "src/pegboard/prompt_cache", "src/pegboard/protection")
SERVERS = ("src/pegboard/gateways/mcp", "src/pegboard/upstreams")
BENCH = "benchmarks/pegboard_bench"
MEASURED: Mapping[str, Sequence[str]] = {
    "adapters": (
        *(f"{BENCH}/adapters", "tests/adapters", "scripts/install_frameworks.py"),
        *("src/pegboard/adapters", "src/pegboard/library", *RANKING),
    ),
    "agents": (f"{BENCH}/agents", "src/pegboard/gateways/langchain", "src/pegboard/library", *RANKING),
    "board": (f"{BENCH}/board", "src/pegboard/library", *RANKING),
    "under_load": ("src/pegboard", "tests"),
    "bulk": (
        *(f"{BENCH}/bulk", "src/pegboard/compose/shard_jobs.py", "src/pegboard/stores/vector_shards.py"),
        *("src/pegboard/retrieval/encoders", "src/pegboard/retrieval/tool_texts.py"),
    ),
    "cache": (f"{BENCH}/cache", *MODELS),
    "coding_agents": (f"{BENCH}/coding_agents", "scripts/install_agents.py", *MODELS, *RANKING),
    "compat": (f"{BENCH}/compat", "pyproject.toml"),
    "conformance": (f"{BENCH}/conformance", *SERVERS),
    "control_tools": (f"{BENCH}/control_tools", "scripts/install_frameworks.py", *MODELS),
    "deferral": (f"{BENCH}/llm", *MODELS),
    "fleet": (f"{BENCH}/fleet", *SERVERS),
    "gate": (f"{BENCH}/learning", "src/pegboard/retrieval", "src/pegboard/routing"),
    "hostile": (f"{BENCH}/hostile", *MODELS, *SERVERS, "src/pegboard/gateways/serve.py"),
    "index": (f"{BENCH}/index", "src/pegboard/stores"),
    "langchain_own": (
        *(f"{BENCH}/langchain_own", "scripts/install_langchain_tests.py"),
        *("src/pegboard/gateways/langchain", "src/pegboard/library"),
    ),
    "live": (f"{BENCH}/tax", *RANKING),
    "llm": (f"{BENCH}/llm", *MODELS, *RANKING),
    "mcp": (f"{BENCH}/mcp", *SERVERS),
    "no_match": (f"{BENCH}/no_match", "src/pegboard/retrieval"),
    "observability": (
        *(f"{BENCH}/observability", "src/pegboard/gateways/dashboard", "src/pegboard/stores"),
        "src/pegboard/telemetry",
    ),
    "priced": (f"{BENCH}/priced.py", "src/pegboard/routing"),
    "programs": (f"{BENCH}/programs", "src/pegboard/programs", "src/pegboard/gateways/mcp/gateway"),
    "rank": (f"{BENCH}/rank.py", f"{BENCH}/quality.py", f"{BENCH}/latency.py", f"{BENCH}/peers", *RANKING),
    "scale": (f"{BENCH}/scale", "src/pegboard/retrieval/index"),
    "scan": (f"{BENCH}/scan", "src/pegboard/trust"),
    "searches": (f"{BENCH}/fleet", "src/pegboard/gateways/mcp/gateway", *RANKING),
    "shaping": (f"{BENCH}/result_shapes", "src/pegboard/results"),
    "simulate": (f"{BENCH}/simulate", "src/pegboard/routing"),
    "skills": (f"{BENCH}/skills", "src/pegboard/library", "src/pegboard/board_items.py"),
    "tenants": (f"{BENCH}/tenants", "src/pegboard/tenants", *RANKING),
    "state": (f"{BENCH}/state", "src/pegboard/stores"),
    "summaries": (f"{BENCH}/summaries.py", "src/pegboard/summaries"),
    "tasks": (f"{BENCH}/whole_tasks", "scripts/install_task_servers.py", *MODELS, *SERVERS, *RANKING),
    "tasks_progressive": (
        *(f"{BENCH}/whole_tasks", "scripts/install_progressive.py", "scripts/progressive_server.mjs"),
        *(*MODELS, *SERVERS, *RANKING),
    ),
    "tax": (f"{BENCH}/tax", *RANKING),
    "usage": (f"{BENCH}/usage.py", f"{BENCH}/usage_streams.py", "src/pegboard/routing", "src/pegboard/retrieval"),
    "users": (f"{BENCH}/users", *SERVERS),
}
"""What each results file measures, by paths from the repository's root."""


@dataclass(frozen=True, slots=True)
class Age:
    """``later``: commits after that of the results that changed what they measure; None if that commit is not here.
    ``dirty``: the sources differed from the commit."""

    name: str
    commit: str
    date: str
    later: int | None
    dirty: bool

    @property
    def current(self) -> bool:
        return self.later == 0 and not self.dirty


def age(path: Path, root: Path, paths: Sequence[str]) -> Age:
    """The age of a results file of the repository at ``root``."""
    result = results.read(path)
    commit, _, rest = str(result["commit"]).partition("-")
    return Age(path.stem, commit, str(result["date"])[:10], _later(root, commit, paths), bool(rest))


def _later(root: Path, commit: str, paths: Sequence[str]) -> int | None:
    known = subprocess.run(
        ["git", "merge-base", "--is-ancestor", commit, "HEAD"],  # noqa: S607
        cwd=root,
        capture_output=True,
        check=False,
    )
    if known.returncode:
        return None
    counted = subprocess.run(
        ["git", "rev-list", "--count", "--no-merges", f"{commit}..HEAD", "--", *paths],  # noqa: S607
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(counted.stdout)


def main(
    names: Annotated[list[str] | None, typer.Argument(help="Results files without `.json`; default: all.")] = None,
    folder: Annotated[Path, typer.Option("--out", help="Folder of the results files.")] = ROOT / "bench" / "results",
    strict: Annotated[bool, typer.Option("--strict", help="Fail unless all are of the code at hand.")] = False,
) -> None:
    """Which results are older than the code that they measure."""
    there = {path.stem: path for path in sorted(folder.glob("*.json"))}
    if unknown := sorted(set(names or ()) - there.keys()):
        raise typer.BadParameter(f"{folder} has no {unknown[0]}.json: it has {', '.join(there)}.")
    ages = [
        age(path, ROOT, MEASURED[name]) for name, path in there.items() if name in MEASURED and name in (names or there)
    ]
    table = Table("results", "date", "commit", "later changes", box=None)
    for each in ages:
        later = "not here" if each.later is None else str(each.later)
        table.add_row(each.name, each.date, f"{each.commit[:12]}{' (changed)' if each.dirty else ''}", later)
    Console().print(table)
    if strict and not all(each.current for each in ages):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
