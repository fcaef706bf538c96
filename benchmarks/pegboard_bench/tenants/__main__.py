"""`python -m pegboard_bench.tenants` writes `bench/results/tenants.json`: memory, isolation and noisy neighbours."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from pegboard_bench import results
from pegboard_bench.page import write_page
from pegboard_bench.tenants import measure, neighbours
from pegboard_bench.tenants.measure import LIMIT, Measured, Sizes
from pegboard_bench.tenants.neighbours import FLOOD, NEIGHBOURS, RATE, ROUNDS, Disturbed
from pegboard_bench.tenants.world import read_world

SEED = 20261126
STDERR = Console(stderr=True)


def main(
    data: Annotated[Path, typer.Option(envvar="PEGBOARD_DATA", help="Folder of the tool-retrieval sets.")],
    cache: Annotated[Path, typer.Option(help="Folder for embeddings of the real tools.")] = Path(".demo/embeddings"),
    tenants: Annotated[int, typer.Option(help="Number of tenants.")] = 2_000,
    tools: Annotated[int, typer.Option(help="Tools of each tenant.")] = 500,
    asked: Annotated[int, typer.Option("--results", help="Results whose owners are checked.")] = 100_000,
    imported: Annotated[int, typer.Option(help="Tools that one tenant imports while others search.")] = 50_000,
    seconds: Annotated[float, typer.Option(help="How long the others search without it, in all.")] = 60.0,
    out: Annotated[Path, typer.Option(help="Folder for tenants.json.")] = Path("bench/results"),
    page: Annotated[Path | None, typer.Option(help="Write the results as a section of this page too.")] = None,
) -> None:
    """Measure many tenants on one store, each part in a process of its own."""
    cache.mkdir(parents=True, exist_ok=True)
    sizes = Sizes(tenants=tenants, tools=tools, results=asked, seed=SEED)
    world = asyncio.run(read_world(data, cache))
    STDERR.print(f"{tenants:,} tenants …")
    of_memory = _apart(measure.measured, data, cache, sizes)
    STDERR.print(f"{of_memory}"[:400])
    STDERR.print(f"An import of {imported:,} tools …")
    with tempfile.TemporaryDirectory() as folder:
        disturbed = _apart(neighbours.measured, data, cache, sizes, imported, seconds, Path(folder))
    tables: dict[str, Any] = {
        "tenants": tenants,
        "tools": tools,
        "shared": sizes.shared,
        "public": len(world.catalog),
        "public_servers": len(world.catalog.servers),
        "limit": LIMIT,
        "imported": imported,
        "neighbours": NEIGHBOURS,
        "rate": RATE,
        "rounds": ROUNDS,
        "flood": FLOOD,
        "load": os.getloadavg()[1],
    }
    figures = of_views(of_memory) | of_neighbours(disturbed)
    path = results.write("tenants", command="make bench-tenants", seed=SEED, figures=figures, tables=tables, folder=out)
    STDERR.print(f"Written to {path}")
    if page is not None:
        write_page(page, out)
        STDERR.print(f"Written to {page}")


def of_views(found: Measured) -> dict[str, float]:
    return {
        "distinct": found.distinct,
        "listed": found.listed,
        "import_s": found.import_s,
        "memory_mb/distinct": found.distinct_mb,
        "memory_mb/with_views": found.views_mb,
        "memory_mb/with_boards": found.all_mb,
        "memory_mb/apart_each": found.apart_mb,
        "memory_ratio": found.all_mb / found.distinct_mb,
        "hot_boards": found.hot_boards,
        "results": found.results,
        "foreign": found.foreign,
        "searches_without_result": found.empty,
        **_percentiles("first_search", found.first_ms),
        **_percentiles("search", found.search_ms),
    }


def of_neighbours(found: Disturbed) -> dict[str, float]:
    phases = {
        "quiet": found.quiet,
        "importing": found.importing,
        "building": found.building,
        "flooded": found.flooded,
    }
    figures: dict[str, float] = {"flood_answers": found.flood_answers}
    for name, phase in phases.items():
        figures |= _percentiles(name, phase.times)
        figures |= {f"seconds/{name}": phase.seconds, f"searches/{name}": len(phase.times)}
        figures[f"p95_ratio/{name}"] = figures[f"p95_ms/{name}"] / figures["p95_ms/quiet"]
    whole = [*found.importing.times, *found.building.times]
    figures |= _percentiles("until_found", whole)
    figures["p95_ratio/until_found"] = figures["p95_ms/until_found"] / figures["p95_ms/quiet"]
    return figures


def _percentiles(name: str, times: list[float] | Any) -> dict[str, float]:
    return {
        **{f"p{at}_ms/{name}": float(np.percentile(times, at)) for at in (50, 95, 99)},
        f"most_ms/{name}": float(max(times)),
    }


def _apart(work: Any, *given: Any) -> Any:
    """In a process of its own, so that its memory is its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *given).result()


if __name__ == "__main__":
    typer.run(main)
