"""`python -m pegboard_bench.scale` writes `bench/results/scale.json`: searches and changes from 10^3 to 10^6 tools."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from pegboard.retrieval.index import bit_index
from pegboard_bench import results
from pegboard_bench.index.vectors import real
from pegboard_bench.page import write_page
from pegboard_bench.scale import growth
from pegboard_bench.scale.measure import CHANGES, SEARCHES, Measured, measured_apart

SET = "mcp_large"
QUERIES = 200
SIZES = (1_000, 10_000, 100_000, 1_000_000)
SEED = 20261124
STDERR = Console(stderr=True)


def main(
    data: Annotated[Path, typer.Option(envvar="PEGBOARD_DATA", help="Folder of the tool-retrieval sets.")],
    cache: Annotated[Path, typer.Option(help="Folder for embeddings; a second run then takes minutes less.")] = Path(
        ".demo/embeddings"
    ),
    size: Annotated[list[int] | None, typer.Option(help="Number of tools. Can be given more than once.")] = None,
    seconds: Annotated[float, typer.Option(help="How long changes and searches go on beside each other.")] = 20.0,
    out: Annotated[Path, typer.Option(help="Folder for scale.json.")] = Path("bench/results"),
    page: Annotated[Path | None, typer.Option(help="Write the results as a section of this page too.")] = None,
) -> None:
    """Measure the compressed index on boards of growing size, one thread, each size in a process of its own."""
    cache.mkdir(parents=True, exist_ok=True)
    models = asyncio.run(real(data / SET, cache, QUERIES))
    sizes = size or list(SIZES)
    figures: dict[str, float] = {}
    for each in sizes:
        STDERR.print(f"{each:,} tools …")
        enter(figures, each, measured_apart(models, each, SEED, seconds))
    tables: dict[str, Any] = {
        "sizes": sizes,
        "real": len(models.rows),
        "queries": len(models.queries),
        "exact_up_to": bit_index.EXACT_UP_TO,
        "changes": CHANGES,
        "searches": SEARCHES,
        "seconds": seconds,
        "load": os.getloadavg()[1],
    }
    path = results.write("scale", command="make bench-scale", seed=SEED, figures=figures, tables=tables, folder=out)
    STDERR.print(f"Written to {path}")
    if page is not None:
        growth.draw(figures, sizes, page.parent)
        write_page(page, out)
        STDERR.print(f"Written to {page}")


def enter(figures: dict[str, float], size: int, found: Measured) -> None:
    figures |= {
        f"build_s/{size}": found.build_s,
        f"memory_mb/{size}": found.memory_mb,
        f"file_mb/{size}": found.file_mb,
        f"lists/{size}": found.lists,
        f"recall@10/{size}": found.recall,
        f"recall@10_few_servers/{size}": found.recall_few_servers,
        f"late_s/{size}": found.late_s,
    }
    times = {
        "search": found.search_ms,
        "few_servers": found.few_servers_ms,
        "add": found.add_ms,
        "remove": found.remove_ms,
        "add_alone": found.add_alone_ms,
        "remove_alone": found.remove_alone_ms,
        "search_while_changing": found.sustained_ms,
    }
    for name, each in times.items():
        figures[f"p50_ms/{name}/{size}"] = float(np.percentile(each, 50))
        figures[f"p95_ms/{name}/{size}"] = float(np.percentile(each, 95))


if __name__ == "__main__":
    typer.run(main)
