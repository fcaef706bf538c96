"""How old each results file is: how much of the code that it measures is not as it was at the file's own commit.

    python -m pegboard_bench.results_age             # a table; --strict: fail unless every file is of the code at hand
    python -m pegboard_bench.results_age rank llm    # these files alone
    python -m pegboard_bench.results_age rank --names    # and which files of the code have changed

Comments and docstrings measure nothing: Python is compared as it is parsed, and modules that only write pages
(`page.py`, `*_page.py`) are left out. A results file whose commit is not in this repository, or whose sources differed
from it, cannot be made again: that is said too.
"""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
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


WRITES_PAGES = "page.py"
"""How the names of such modules end."""


@dataclass(frozen=True, slots=True)
class Age:
    """``changed``: files of what the results measure whose code has changed since; None if their commit is not here.
    ``dirty``: the sources differed from the commit."""

    name: str
    commit: str
    date: str
    changed: tuple[str, ...] | None
    dirty: bool

    @property
    def current(self) -> bool:
        return self.changed == () and not self.dirty


def age(path: Path, root: Path, paths: Sequence[str]) -> Age:
    """The age of a results file of the repository at ``root``."""
    result = results.read(path)
    commit, _, rest = str(result["commit"]).partition("-")
    return Age(path.stem, commit, str(result["date"])[:10], _changed(root, commit, paths), bool(rest))


def _changed(root: Path, commit: str, paths: Sequence[str]) -> tuple[str, ...] | None:
    if _git(root, "merge-base", "--is-ancestor", commit, "HEAD") is None:
        return None
    head = (_git(root, "rev-parse", "HEAD") or "").strip()
    files = (_git(root, "diff", "--name-only", "--no-renames", commit, head, "--", *paths) or "").splitlines()
    return tuple(
        each
        for each in files
        if not each.endswith(WRITES_PAGES) and _code(root, commit, each) != _code(root, head, each)
    )


@lru_cache(maxsize=4096)
def _code(root: Path, commit: str, file: str) -> str | None:
    """What a file says at a commit, without what Python does not run; None where it is not there."""
    text = _git(root, "show", f"{commit}:{file}")
    if text is None or not file.endswith(".py"):
        return text
    tree = ast.parse(text)
    for each in ast.walk(tree):
        if isinstance(each, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            each.body = [line for line in each.body if not _is_docstring(line)]
    return ast.dump(tree)


def _is_docstring(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _git(root: Path, *words: str) -> str | None:
    """What Git answers; None where it refuses."""
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, check=False)  # noqa: S607
    return None if done.returncode else done.stdout.decode("utf-8", "surrogateescape")


def main(
    names: Annotated[list[str] | None, typer.Argument(help="Results files without `.json`; default: all.")] = None,
    folder: Annotated[Path, typer.Option("--out", help="Folder of the results files.")] = ROOT / "bench" / "results",
    strict: Annotated[bool, typer.Option("--strict", help="Fail unless all are of the code at hand.")] = False,
    show: Annotated[bool, typer.Option("--names", help="Name the files whose code has changed.")] = False,
) -> None:
    """Which results are older than the code that they measure."""
    there = {path.stem: path for path in sorted(folder.glob("*.json"))}
    if unknown := sorted(set(names or ()) - there.keys()):
        raise typer.BadParameter(f"{folder} has no {unknown[0]}.json: it has {', '.join(there)}.")
    ages = [
        age(path, ROOT, MEASURED[name]) for name, path in there.items() if name in MEASURED and name in (names or there)
    ]
    table = Table("results", "date", "commit", "files changed", box=None)
    for each in ages:
        changed = "commit not here" if each.changed is None else str(len(each.changed))
        table.add_row(each.name, each.date, f"{each.commit[:12]}{' (changed)' if each.dirty else ''}", changed)
        for file in (each.changed or ()) if show else ():
            table.add_row("", "", "", file)
    Console().print(table)
    if strict and not all(each.current for each in ages):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
