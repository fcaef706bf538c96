"""`python -m pegboard_bench.hostile` writes `bench/results/hostile.json`: a gateway under attack and fault."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Annotated
from uuid import uuid4

import typer
from rich.console import Console
from rich.table import Table

from pegboard.evaluation.progress_bar import bar
from pegboard_bench import results
from pegboard_bench.hostile.idle import ended_with_idle
from pegboard_bench.hostile.scenarios import SCENARIOS, run
from pegboard_bench.hostile.schemas import hostile_schemas
from pegboard_bench.hostile.stores import gateway_restarted, store_restarted
from pegboard_bench.page import write_page

SEED = 0
"""Nothing here is drawn by chance."""
IDLE_SESSIONS = 6_800
STDERR = Console(stderr=True)
RESTARTS = {"gateway": gateway_restarted, "store": store_restarted}
Figures = dict[str, float]


def main(
    redis: Annotated[str, typer.Option(help="The server for the restarts.")] = "redis://127.0.0.1:6379/0",
    postgres: Annotated[
        str, typer.Option(help="The server for the restarts.")
    ] = "postgresql://postgres@127.0.0.1:5432/test",
    only: Annotated[list[str] | None, typer.Option(help="Defects to try, such as D7; all by default.")] = None,
    idle: Annotated[int, typer.Option(help="Idle sessions that stopping is timed with; 0: not.")] = IDLE_SESSIONS,
    out: Annotated[Path, typer.Option(help="Folder for hostile.json.")] = Path("bench/results"),
    page: Annotated[Path | None, typer.Option(help="Write the results as a section of this page too.")] = None,
) -> None:
    """Attack a real `pegboard serve` on this machine, and say how long it was deaf and what memory it took."""
    figures: Figures = {}
    wanted = [each for each in SCENARIOS if not only or each.defect in only]
    with bar("attacks") as progress:
        for done, scenario in enumerate(wanted):
            progress(done, len(wanted))
            with tempfile.TemporaryDirectory(prefix="pegboard-bench-") as folder:
                seen = run(scenario, Path(folder))
            name = f"{scenario.defect.lower()}/{scenario.name}"
            figures |= {f"healthz_longest_s/{name}": seen.longest, f"peak_over_idle_mb/{name}": seen.memory}
            figures |= {f"{figure}/{name}": value for figure, value in seen.more.items()}
    if not only or "D3" in only:
        figures |= _schemas()
    if not only or "D9" in only:
        figures |= _restarts({"redis": redis, "postgres": postgres})
    if idle and (not only or "D13" in only):
        with tempfile.TemporaryDirectory(prefix="pegboard-bench-") as folder:
            figures["stop_s/d13/idle_sessions"] = asyncio.run(ended_with_idle(Path(folder), idle))
    tables = {"says": {f"{each.defect.lower()}/{each.name}": each.says for each in SCENARIOS}, "idle_sessions": idle}
    path = results.write("hostile", command="make bench-hostile", seed=SEED, figures=figures, tables=tables, folder=out)
    Console(width=None if sys.stdout.isatty() else 120).print(_shown(figures))
    STDERR.print(f"Written to {path}")
    if page is not None:
        write_page(page, out)
        STDERR.print(f"Written to {page}")


def _schemas() -> Figures:
    with tempfile.TemporaryDirectory(prefix="pegboard-bench-") as folder:
        longest, memory = asyncio.run(hostile_schemas(Path(folder)))
    return {"healthz_longest_s/d3/schemas": longest, "peak_over_idle_mb/d3/schemas": memory}


def _restarts(states: dict[str, str]) -> Figures:
    figures: Figures = {}
    for store, state in states.items():
        for what, restarted in RESTARTS.items():
            with tempfile.TemporaryDirectory(prefix="pegboard-bench-") as folder:
                found = asyncio.run(restarted(Path(folder), state, prefix=f"hostile_{uuid4().hex[:8]}"))
            name = f"d9/{what}-{store}"
            figures |= {f"sessions_lost/{name}": found.lost, f"refused_s/{name}": found.seconds}
    return figures


def _shown(figures: Figures) -> Table:
    table = Table(title="under attack and fault", title_justify="left")
    table.add_column("figure")
    table.add_column("value", justify="right")
    for name, value in sorted(figures.items()):
        table.add_row(name, f"{value:,.2f}")
    return table


if __name__ == "__main__":
    typer.run(main)
