"""`python -m pegboard_bench.tenants` writes `bench/results/tenants.json`: memory, and whose tools are found."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from pegboard_bench import results
from pegboard_bench.page import write_page
from pegboard_bench.tenants import measure
from pegboard_bench.tenants.measure import EVERY, LIMIT, Measured, Sizes
from pegboard_bench.tenants.measured_apart import apart, percentiles
from pegboard_bench.tenants.world import read_world

SEED = 20261126
STDERR = Console(stderr=True)


def main(
    data: Annotated[Path, typer.Option(envvar="PEGBOARD_DATA", help="Folder of the tool-retrieval sets.")],
    cache: Annotated[Path, typer.Option(help="Folder for embeddings of the real tools.")] = Path(".demo/embeddings"),
    tenants: Annotated[int, typer.Option(help="Number of tenants.")] = 2_000,
    tools: Annotated[int, typer.Option(help="Tools of each tenant.")] = 500,
    asked: Annotated[int, typer.Option("--results", help="Results whose owners are checked.")] = 100_000,
    out: Annotated[Path, typer.Option(help="Folder for tenants.json.")] = Path("bench/results"),
    page: Annotated[Path | None, typer.Option(help="Write the results as a section of this page too.")] = None,
) -> None:
    """Measure many tenants on one store, each part in a process of its own."""
    cache.mkdir(parents=True, exist_ok=True)
    sizes = Sizes(tenants=tenants, tools=tools, results=asked, seed=SEED)
    world = asyncio.run(read_world(data, cache))
    STDERR.print(f"{tenants:,} tenants …")
    found = apart(measure.measured, data, cache, sizes)
    tables: dict[str, Any] = {
        "tenants": tenants,
        "tools": tools,
        "shared": sizes.shared,
        "public": len(world.catalog),
        "public_servers": len(world.catalog.servers),
        "limit": LIMIT,
        "every": EVERY,
        "load": os.getloadavg()[1],
    }
    figures = of_views(found)
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
        **percentiles("first_search", found.first_ms),
        **percentiles("search", found.search_ms),
    }


if __name__ == "__main__":
    typer.run(main)
