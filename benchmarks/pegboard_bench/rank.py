"""Ranking quality and latency: `python -m pegboard_bench.rank` writes `bench/results/rank.json`.

Without any set there is only the latency on a synthetic catalog, which goes into `rank-synthetic.json`.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pegboard.catalog import Catalog
from pegboard.catalog.ingest import read_catalog
from pegboard.compose import Parts, default_parts
from pegboard.evaluation.datasets import CATALOG, QUERIES, ToolSet, read_set
from pegboard.evaluation.progress_bar import bar
from pegboard.protocols import Encoder
from pegboard.retrieval import CachedEncoder, OnnxEncoder
from pegboard.settings import Settings, load_settings
from pegboard.stores import MemoryEmbeddings
from pegboard_bench import latency, pictures, results
from pegboard_bench.latency import Latency
from pegboard_bench.measurements import Measured, measure
from pegboard_bench.page import write_page
from pegboard_bench.report import latency_table, quality_table
from pegboard_bench.synthetic import synthetic_catalog, synthetic_queries

SETS = ("livemcp_tasks", "livemcp_steps", "livemcp_routes", "mcpverse", "mcpproxy_golden", "graphtoolcall", "metatool")
TIMED = ("livemcp_tasks", "livemcp_steps", "livemcp_routes")
"""One catalog of 527 tools, three kinds of query: user requests, single steps, routes."""
LARGE = "mcp_large"
"""9,812 tools."""
SYNTHETIC_SIZE = 527
SEED = 20260728

PIPED_WIDTH = 120
"""Columns where stdout is no terminal: wide enough that nothing is broken."""

STDERR = Console(stderr=True)


def main(
    data: Annotated[
        Path | None, typer.Option(envvar="PEGBOARD_DATA", help="Folder of the tool-retrieval sets.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for rank.json.")] = Path("bench/results"),
    page: Annotated[Path | None, typer.Option(help="Write the results as a page to this file too.")] = None,
    sets: Annotated[str, typer.Option(help="Sets to measure, separated by commas.")] = ",".join(SETS),
    peers: Annotated[Path | None, typer.Option(help="Folder of scripts/install_peers.py, to measure them too.")] = None,
    untuned: Annotated[
        Path | None, typer.Option(help="An encoder that scripts/build_encoder.py made of the published weights.")
    ] = None,
) -> None:
    """Measure ranking quality on labelled sets, calibration, and the latency of a route."""
    wanted = [name for name in sets.split(",") if name]
    present = [data / name for name in wanted if (data / name / QUERIES).is_file()] if data else []
    if missing := set(wanted) - {folder.name for folder in present}:
        STDERR.print(
            f"Not measured, for want of data: {', '.join(sorted(missing))}. Set PEGBOARD_DATA to their folder."
        )
    measured = asyncio.run(_measured([read_set(folder) for folder in present], peers, untuned))
    times = asyncio.run(_latencies(data))
    path = results.write(
        "rank" if present else "rank-synthetic",
        command="make bench-rank",
        seed=SEED,
        figures=measured.figures() | {name: value for timed, _ in times for name, value in timed.figures().items()},
        tables=measured.tables() | {"latency_catalogs": {str(timed.size): name for timed, name in times}},
        folder=out,
    )
    console = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH)
    for each in measured.qualities:
        console.print(quality_table(each))
    for timed, name in times:
        console.print(latency_table(timed, name))
    console.print(f"Written to {path}")
    if page is not None and present:
        pictures.draw(results.read(path)["tables"], page.parent)
        write_page(page, out)
        console.print(f"Written to {page}")


async def _measured(datasets: Sequence[ToolSet], peers: Path | None, untuned: Path | None) -> Measured:
    """One encoder for all, so that a text is embedded once."""
    settings = load_settings()
    before = None if untuned is None else _parts(settings, OnnxEncoder(untuned))
    return await measure(datasets, settings, _parts(settings, OnnxEncoder()), untuned=before, peers=peers, seed=SEED)


def _parts(settings: Settings, encoder: Encoder) -> Parts:
    cached = CachedEncoder(encoder, MemoryEmbeddings(1_000_000))
    return default_parts(settings, encoder=cached, embeddings=MemoryEmbeddings(1_000_000))


async def _latencies(data: Path | None) -> list[tuple[Latency, str]]:
    """On a catalog of hundreds, and on one of thousands where there is one."""
    with tempfile.TemporaryDirectory(prefix="pegboard-bench-") as folder:
        small = _timed(data, Path(folder))
        found = [await _latency(*small, Path(folder) / "small")]
        if data is not None and (data / LARGE / CATALOG).is_file():
            path = data / LARGE / CATALOG
            found.append(await _latency(path, read_catalog(path), small[2], LARGE, Path(folder) / "large"))
    return found


async def _latency(file: Path, catalog: Catalog, texts: Sequence[str], name: str, cache: Path) -> tuple[Latency, str]:
    STDERR.print(f"latency: {len(catalog)} tools ({name}), {len(texts)} texts")
    with bar("index for latency") as progress:
        return await latency.measure(catalog, file, texts, cache, progress), name


def _timed(data: Path | None, folder: Path) -> tuple[Path, Catalog, list[str], str]:
    """Catalog and texts of the latency part: real ones where there are any."""
    found = [data / name for name in TIMED if (data / name / QUERIES).is_file()] if data else []
    if not found:
        catalog = synthetic_catalog(SYNTHETIC_SIZE, SEED)
        return _written(catalog, folder), catalog, synthetic_queries(latency.ROUTES, SEED), "synthetic"
    sets = [read_set(each) for each in found]
    texts = dict.fromkeys(query.text for dataset in sets for query in dataset.queries)
    return found[0] / CATALOG, sets[0].catalog, _spread(list(texts)), found[0].name


def _spread(texts: list[str]) -> list[str]:
    """About as many as are timed, evenly over all, so that every kind of query takes part."""
    step = max(1, len(texts) // latency.ROUTES)
    return texts[::step]


def _written(catalog: Catalog, folder: Path) -> Path:
    path = folder / "catalog.jsonl"
    rows = (
        {"server": tool.server, "name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
        for tool in catalog.tools
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


if __name__ == "__main__":
    typer.run(main)
