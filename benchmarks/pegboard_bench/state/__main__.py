"""`python -m pegboard_bench.state` writes `bench/results/state.json`: what state costs, by store."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median, quantiles
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from pegboard.errors import PegboardError
from pegboard.evaluation.progress_bar import bar
from pegboard_bench import results
from pegboard_bench.page import write_page
from pegboard_bench.state.measure import Times, measure
from pegboard_bench.state.sessions import LIVE
from pegboard_bench.state.stores import NAMES, opened

SEED = 0
"""Nothing here is drawn by chance."""
STDERR = Console(stderr=True)


def main(
    redis: Annotated[str, typer.Option(help="A server to be measured.")] = "redis://127.0.0.1:6379/0",
    postgres: Annotated[
        str, typer.Option(help="A server to be measured.")
    ] = "postgresql://postgres@127.0.0.1:5432/test",
    out: Annotated[Path, typer.Option(help="Folder for state.json.")] = Path("bench/results"),
    page: Annotated[Path | None, typer.Option(help="Write the results as a section of this page too.")] = None,
    rounds: Annotated[int, typer.Option(help="Rounds of each kind of work.")] = 60,
) -> None:
    """Measure what is done with each store, in turns; then what ten thousand sessions take."""
    urls = {"redis": redis, "postgres": postgres}
    with tempfile.TemporaryDirectory(prefix="pegboard-bench-") as folder:
        times, tables = asyncio.run(_measured(urls, Path(folder), rounds))
        room = {name: _room(name, urls, folder) for name in tables["versions"]}
    figures = _figures(times, room)
    tables |= {"rounds": rounds, "samples": {kind: len(next(iter(found.values()))) for kind, found in times.items()}}
    path = results.write("state", command="make bench-state", seed=SEED, figures=figures, tables=tables, folder=out)
    Console(width=None if sys.stdout.isatty() else 120).print(_shown(figures))
    STDERR.print(f"Written to {path}")
    if page is not None:
        write_page(page, out)
        STDERR.print(f"Written to {page}")


async def _measured(urls: Mapping[str, str], folder: Path, rounds: int) -> tuple[Times, dict[str, Any]]:
    """The times, and which stores there are and are not."""
    async with AsyncExitStack() as stack:
        stores, missing, versions = {}, {}, {}
        for name in NAMES:
            try:
                stores[name] = await stack.enter_async_context(opened(name, urls, folder))
            except PegboardError as error:
                missing[name] = error.message
                STDERR.print(f"Not measured: {error.message}")
                continue
            about = await stores[name].about()
            versions[name] = about.version if about else ""
        with bar("stores in turns") as progress:
            times = await measure(stores, rounds, progress)
        return times, {"versions": versions, "missing": missing}


def _room(name: str, urls: Mapping[str, str], folder: str) -> dict[str, int]:
    command = [sys.executable, "-m", "pegboard_bench.state.sessions", name, json.dumps(urls), folder]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=dict(os.environ))
    return dict(json.loads(done.stdout))


def _figures(times: Times, room: Mapping[str, Mapping[str, int]]) -> dict[str, float]:
    figures: dict[str, float] = {}
    for kind, of_stores in times.items():
        work, _, together = kind.partition("/")
        for name, values in of_stores.items():
            where = f"{name}/{together}" if together else name
            figures[f"{work}_p50_ms/{where}"] = median(values)
            figures[f"{work}_p95_ms/{where}"] = quantiles(values, n=20)[-1]
    for name, taken in room.items():
        figures[f"rss_mb_{LIVE}_sessions/{name}"] = taken["process"] / 1e6
        if "store" in taken:
            figures[f"store_mb_{LIVE}_sessions/{name}"] = taken["store"] / 1e6
    return figures


def _shown(figures: Mapping[str, float]) -> Table:
    table = Table(title="what state costs", title_justify="left")
    table.add_column("figure")
    table.add_column("value", justify="right")
    for name, value in figures.items():
        table.add_row(name, f"{value:,.3f}")
    return table


if __name__ == "__main__":
    typer.run(main)
