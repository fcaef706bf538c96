"""Measures the dashboard over a million decisions, in SQLite and in PostgreSQL: `make bench-observability`.

Each page over HTTP, growth a decision, the live view at 200 decisions a second, and retention meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer

from pegboard.clock import SYSTEM_CLOCK
from pegboard.stores.state import open_state
from pegboard_bench import results
from pegboard_bench.observability.decisions import DAYS
from pegboard_bench.observability.live import live_figures
from pegboard_bench.observability.pages import activity_of, filled, kept, p95, page_times, settings_of, size_of

DAY = 86_400.0
RESULTS = Path("bench/results")


async def measured(url: str | None, folder: Path, many: int, rounds: int, seed: int) -> tuple[dict[str, float], Any]:
    """The figures of one store, and milliseconds by page."""
    now = time.time()
    async with settings_of(url, folder) as settings:
        async with activity_of(settings) as store:
            took = await filled(store, many, now, seed)
        size = await size_of(settings)
        async with activity_of(settings) as store:
            pages = await page_times(settings, store, rounds)
        state = open_state(settings, SYSTEM_CLOCK)
        live = await live_figures(kept(state), state.archive, 10.0, now - (DAYS - 3) * DAY)
        await state.close()
    table = {name: {"p50_ms": round(median(each), 2), "p95_ms": round(p95(each), 2)} for name, each in pages.items()}
    figures = {
        "decisions": many,
        "put_us": took / many * 1e6,
        "bytes_a_decision": size / many,
        "slowest_page_p95_ms": max(each["p95_ms"] for each in table.values()),
        **live,
    }
    return figures, table


def main(
    many: Annotated[int, typer.Option("--decisions", help="Decisions in each store.")] = 1_000_000,
    rounds: Annotated[int, typer.Option(help="Times that each page is read.")] = 40,
    postgres: Annotated[str, typer.Option(help="Address of PostgreSQL; empty to leave it out.")] = (
        "postgresql://postgres@127.0.0.1:5432/test"
    ),
    write: Annotated[bool, typer.Option(help="Keep the figures in bench/results.")] = False,
) -> None:
    """Pages, growth, live view and retention."""
    figures, tables = dict[str, float](), dict[str, Any]()
    with tempfile.TemporaryDirectory() as folder:
        for name, url in {"sqlite": None, "postgres": postgres}.items():
            if url == "":
                continue
            found, tables[name] = asyncio.run(measured(url, Path(folder, name), many, rounds, seed=0))
            figures |= {f"{name}/{figure}": value for figure, value in found.items()}
            typer.echo(json.dumps({name: {**found, "pages": tables[name]}}, indent=1))
    if write:
        results.write(
            "observability", command="make bench-observability", seed=0, figures=figures, tables=tables, folder=RESULTS
        )


if __name__ == "__main__":
    typer.run(main)
