"""`python -m pegboard_bench.tenants.import_run` puts what an import costs the others into `tenants.json`."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pegboard_bench import results
from pegboard_bench.page import write_page
from pegboard_bench.tenants import neighbours
from pegboard_bench.tenants.measure import Sizes
from pegboard_bench.tenants.measured_apart import apart, percentiles
from pegboard_bench.tenants.neighbours import FLOOD, NEIGHBOURS, RATE, ROUNDS, Disturbed

SEED = 20261126
STDERR = Console(stderr=True)


def main(
    data: Annotated[Path, typer.Option(envvar="PEGBOARD_DATA", help="Folder of the tool-retrieval sets.")],
    cache: Annotated[Path, typer.Option(help="Folder for embeddings of the real tools.")] = Path(".demo/embeddings"),
    imported: Annotated[int, typer.Option(help="Tools that one tenant imports while others search.")] = 50_000,
    seconds: Annotated[float, typer.Option(help="How long the others search without it, in all.")] = 60.0,
    out: Annotated[Path, typer.Option(help="Folder of tenants.json.")] = Path("bench/results"),
    page: Annotated[Path | None, typer.Option(help="Write the results as a section of this page too.")] = None,
) -> None:
    """Measure the searches of some tenants while another one imports tools, and while it asks more than others."""
    cache.mkdir(parents=True, exist_ok=True)
    sizes = Sizes(tenants=NEIGHBOURS, tools=500, results=0, seed=SEED)
    with tempfile.TemporaryDirectory() as folder:
        disturbed = apart(neighbours.measured, data, cache, sizes, imported, seconds, Path(folder))
    table = {
        "imported": imported,
        "neighbours": NEIGHBOURS,
        "rate": RATE,
        "rounds": ROUNDS,
        "flood": FLOOD,
        "load": os.getloadavg()[1],
    }
    results.extend(out / "tenants.json", "neighbours", figures=of_neighbours(disturbed), table=table)
    STDERR.print(f"Written to {out / 'tenants.json'}")
    if page is not None:
        write_page(page, out)
        STDERR.print(f"Written to {page}")


def of_neighbours(found: Disturbed) -> dict[str, float]:
    phases = {
        "quiet": found.quiet,
        "importing": found.importing,
        "building": found.building,
        "flooded": found.flooded,
    }
    figures: dict[str, float] = {"flood_answers": found.flood_answers}
    for name, phase in phases.items():
        figures |= percentiles(name, phase.times)
        figures |= {f"seconds/{name}": phase.seconds, f"searches/{name}": len(phase.times)}
        figures[f"p95_ratio/{name}"] = figures[f"p95_ms/{name}"] / figures["p95_ms/quiet"]
    whole = [*found.importing.times, *found.building.times]
    figures |= percentiles("until_found", whole)
    figures["p95_ratio/until_found"] = figures["p95_ms/until_found"] / figures["p95_ms/quiet"]
    return figures


if __name__ == "__main__":
    typer.run(main)
