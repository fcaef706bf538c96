"""`make bench-scan`: the scanner's false alarms on real tools, and its hits on planted poisons."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from pegboard.catalog.ingest import read_catalog
from pegboard.evaluation.datasets import CATALOG
from pegboard_bench import results
from pegboard_bench.page import write_page
from pegboard_bench.scan import measure
from pegboard_bench.scan.plant import PARTS, poisons

SETS = ("mcp_large", "catalog_docker", "catalog_klavis", "catalog_toolsdk")
CARRIERS = 25
SEED = 9
STDERR = Console(stderr=True)


def main(
    data: Annotated[Path, typer.Option(envvar="PEGBOARD_DATA", help="Folder of the tool-retrieval sets.")],
    out: Annotated[Path, typer.Option(help="Folder that the results are written to.")] = Path("bench/results"),
    page: Annotated[Path | None, typer.Option(help="The page of the documentation to write anew.")] = None,
) -> None:
    """Measure the scanner on the catalogs of real tools that are in the folder, and on the poisons of this package."""
    catalogs = {name: read_catalog(data / name / CATALOG) for name in SETS}
    found = {}
    for name, catalog in catalogs.items():
        STDERR.print(f"{name}: {len(catalog):,} tools")
        found[name] = measure.alarms(catalog)
    into = measure.carriers(catalogs[SETS[0]], CARRIERS, SEED)
    caught = {part: measure.hits(poisons(part), into) for part in PARTS}
    figures: dict[str, float] = {}
    for name, row in found.items():
        figures[f"false_alarms/{name}"] = row.suspicious / row.tools
        figures[f"found/{name}"] = row.found / row.tools
    figures |= {f"hit_rate/{part}": hits.share for part, hits in caught.items()}
    tables: dict[str, Any] = {
        "catalogs": {name: asdict(row) for name, row in found.items()},
        "poisons": {part: hits.by_kind for part, hits in caught.items()},
        "carriers": len(into),
    }
    path = results.write("scan", command="make bench-scan", seed=SEED, figures=figures, tables=tables, folder=out)
    STDERR.print({name: round(value, 4) for name, value in figures.items()})
    STDERR.print(f"Written to {path}")
    if page is not None:
        write_page(page, out)
        STDERR.print(f"Written to {page}")


if __name__ == "__main__":
    typer.run(main)
