"""`python -m pegboard_bench.langchain_own` writes `bench/results/langchain_own.json`: LangChain's tests with our
middleware in every agent, with one that does nothing, and as they are."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import typer

from pegboard_bench import results
from pegboard_bench.langchain_own.reasons import reason_of
from pegboard_bench.page import write_page

ROOT = Path(__file__).parents[3]
RUNS = ("nothing", "idle", "pegboard")
TESTS = "tests/unit_tests/agents"
SECONDS = 1800
Outcomes = Mapping[str, Mapping[str, str]]
"""By test: ``outcome``, and what was ``said`` where it failed."""


def run(injected: str, installed: Path) -> Outcomes:
    """One run of all tests of agents. Raises RuntimeError if it did not come to its end."""
    with tempfile.TemporaryDirectory() as name:
        lines = Path(name) / "outcomes.jsonl"
        paths = (ROOT / "src", Path(__file__).parent)
        more = {
            "PEGBOARD_INJECTED": injected,
            "PEGBOARD_OUTCOMES": str(lines),
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
        }
        python = installed.absolute() / "environment" / "bin" / "python"
        options = ("-q", "-p", "injected_middleware", "-p", "no:cacheprovider")
        done = subprocess.run(
            [str(python), "-m", "pytest", *options, "--disable-socket", "--allow-unix-socket", TESTS],
            cwd=installed / "source",
            env=os.environ | more,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        if done.returncode not in (0, 1):  # 1: some failed
            raise RuntimeError(f"pytest ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        rows = [json.loads(line) for line in lines.read_text("utf-8").splitlines()]
    return {row["test"].removeprefix(f"{TESTS}/"): row for row in rows}


def compared(runs: Mapping[str, Outcomes]) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """The figures, and a row for each test that fails with our middleware and not without any."""

    def failed(run: str) -> set[str]:
        return {test for test, row in runs[run].items() if row["outcome"] == "failed"}

    new = sorted(failed("pegboard") - failed("nothing"))
    rows = [
        {
            "test": test,
            "reason": "any" if test in failed("idle") else reason_of(test, runs["pegboard"][test]["said"]),
            "said": runs["pegboard"][test]["said"].splitlines()[0][:200],
        }
        for test in new
    ]
    figures = {"tests": len(runs["nothing"]), "new": len(new)}
    figures |= {f"failed/{run}": len(failed(run)) for run in RUNS}
    figures["new/any"] = sum(row["reason"] == "any" for row in rows)
    figures["new/unexplained"] = sum(row["reason"] == "" for row in rows)
    return {name: float(value) for name, value in figures.items()}, rows


def main(
    installed: Annotated[Path, typer.Option(help="What install_langchain_tests.py made.")] = Path(
        ".demo/langchain_own"
    ),
    out: Annotated[Path, typer.Option(help="Folder for langchain_own.json.")] = Path("bench/results"),
    page: Annotated[Path | None, typer.Option(help="Write the results as a section of this page too.")] = None,
) -> None:
    """Run LangChain's tests three times, and compare."""
    with ThreadPoolExecutor(len(RUNS)) as pool:
        runs = dict(zip(RUNS, pool.map(lambda each: run(each, installed), RUNS), strict=True))
    figures, rows = compared(runs)
    version = next(path.name for path in (installed / "source").glob("langchain==*")).partition("==")[2]
    results.write(
        "langchain_own",
        command="make test-langchain-own",
        seed=0,
        figures=figures,
        tables={"langchain": version, "new": rows},
        folder=out,
    )
    if page is not None:
        write_page(page, out)


if __name__ == "__main__":
    typer.run(main)
