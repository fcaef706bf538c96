"""`make bench-scan`: the scanner's false alarms on real tools, and its hits on planted poisons."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from pegboard.catalog.ingest import read_catalog
from pegboard.evaluation.datasets import CATALOG
from pegboard_bench import results
from pegboard_bench.page import write_page
from pegboard_bench.result_shapes.recordings import recordings
from pegboard_bench.scan import foreign_attacks as others
from pegboard_bench.scan import measure
from pegboard_bench.scan.plant import PARTS, poisons

SETS = ("mcp_large", "catalog_docker", "catalog_klavis", "catalog_toolsdk")
FITTED = ("catalog_docker", "catalog_klavis", "catalog_toolsdk")
"""Those whose sentences the second stage was fitted to."""
CARRIERS = 25
SEED = 9
STDERR = Console(stderr=True)


def main(
    data: Annotated[Path, typer.Option(envvar="PEGBOARD_DATA", help="Folder of the tool-retrieval sets.")],
    out: Annotated[Path, typer.Option(help="Folder that the results are written to.")] = Path("bench/results"),
    attacks: Annotated[
        Path | None,
        typer.Option(envvar="PEGBOARD_ATTACKS", help="Folder of published attacks; without it, their figures stay."),
    ] = None,
    page: Annotated[Path | None, typer.Option(help="The page of the documentation to write anew.")] = None,
) -> None:
    """Measure the scanner on the catalogs of real tools that are in the folder, and on the poisons of this package."""
    catalogs = {name: read_catalog(data / name / CATALOG) for name in SETS}
    fitted_to = {measure.said(tool) for name in FITTED for tool in catalogs[name].tools}
    found = {}
    for name, catalog in catalogs.items():
        STDERR.print(f"{name}: {len(catalog):,} tools")
        found[name] = measure.alarms(catalog, () if name in FITTED else fitted_to)
    of_results = measure.result_alarms(recordings())
    into = measure.carriers(catalogs[SETS[0]], CARRIERS, SEED)
    caught = {part: measure.hits(poisons(part), into) for part in PARTS}
    figures: dict[str, float] = {}
    for name, row in found.items():
        figures[f"false_alarms/{name}"] = row.suspicious / row.tools
        figures[f"found/{name}"] = row.found / row.tools
    figures["false_alarms/results"] = of_results["suspicious"] / of_results["results"]
    figures["false_alarms_unseen/results"] = of_results["unseen_suspicious"] / of_results["unseen"]
    row = found[SETS[0]]
    figures[f"false_alarms_unseen/{SETS[0]}"] = row.unseen_suspicious / row.unseen
    figures |= {"ms/patterns": row.patterns_ms, "ms/both_stages": row.mean_ms, "ms/both_stages_alone": row.alone_ms}
    by_others, published_at = others.measured_or_kept(attacks, out / "scan.json")
    figures |= others.shares(by_others)
    figures |= {f"hit_rate/{part}": hits.share for part, hits in caught.items()}
    tables: dict[str, Any] = {
        "catalogs": {name: asdict(row) for name, row in found.items()},
        "poisons": {part: hits.by_kind for part, hits in caught.items()},
        "results": of_results,
        "carriers": len(into),
        "load": os.getloadavg()[1],
        "published": {
            corpus: {family: asdict(row) for family, row in families.items()} for corpus, families in by_others.items()
        },
        "published_at": published_at,
        "fit": json.loads((files("pegboard.trust") / "meaning.json").read_text("utf-8")),
    }
    path = results.write("scan", command="make bench-scan", seed=SEED, figures=figures, tables=tables, folder=out)
    STDERR.print({name: round(value, 4) for name, value in figures.items()})
    STDERR.print(f"Written to {path}")
    if page is not None:
        write_page(page, out)
        STDERR.print(f"Written to {page}")


if __name__ == "__main__":
    typer.run(main)
