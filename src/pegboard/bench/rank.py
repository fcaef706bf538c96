"""Ranking quality and latency: `python -m pegboard.bench.rank` writes `bench/results/rank.json`.

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

from pegboard.bench import latency, quality, results
from pegboard.bench.datasets import CATALOG, QUERIES, ToolSet, read_set
from pegboard.bench.latency import Latency
from pegboard.bench.methods import searches
from pegboard.bench.page import write_page
from pegboard.bench.progress import bar
from pegboard.bench.quality import Quality
from pegboard.bench.report import latency_table, quality_table
from pegboard.bench.synthetic import synthetic_catalog, synthetic_queries
from pegboard.catalog import Catalog
from pegboard.compose import Parts, default_parts
from pegboard.retrieval import CachedEncoder, OnnxEncoder
from pegboard.settings import load_settings
from pegboard.stores import MemoryEmbeddings

SETS = ("livemcp_tasks", "livemcp_steps", "livemcp_routes", "mcpverse", "mcpproxy_golden", "graphtoolcall", "metatool")
TIMED = ("livemcp_tasks", "livemcp_steps", "livemcp_routes")
"""One catalog of 527 tools, three kinds of query: user requests, single steps, routes."""
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
) -> None:
    """Measure ranking quality on labelled sets, and the latency of a route."""
    wanted = [name for name in sets.split(",") if name]
    present = [data / name for name in wanted if (data / name / QUERIES).is_file()] if data else []
    if missing := set(wanted) - {folder.name for folder in present}:
        STDERR.print(
            f"Not measured, for want of data: {', '.join(sorted(missing))}. Set PEGBOARD_DATA to their folder."
        )
    measured = asyncio.run(_qualities(present))
    times, timed_on = asyncio.run(_latency(data))
    path = results.write(
        "rank" if measured else "rank-synthetic",
        command="make bench-rank",
        seed=SEED,
        figures={name: value for each in measured for name, value in each.figures().items()} | times.figures(),
        tables={"sets": {each.name: each.table() for each in measured}, "latency_catalog": timed_on},
        folder=out,
    )
    console = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH)
    for each in measured:
        console.print(quality_table(each))
    console.print(latency_table(times, timed_on))
    console.print(f"Written to {path}")
    if page is not None and measured:
        write_page(page, out)
        console.print(f"Written to {page}")


async def _qualities(folders: Sequence[Path]) -> list[Quality]:
    """One encoder for all, so that a text is embedded once."""
    encoder = CachedEncoder(OnnxEncoder(), MemoryEmbeddings(1_000_000))
    parts = default_parts(load_settings(), encoder=encoder, embeddings=MemoryEmbeddings(1_000_000))
    return [await _quality(read_set(folder), parts) for folder in folders]


async def _quality(dataset: ToolSet, parts: Parts) -> Quality:
    STDERR.print(f"{dataset.name}: {len(dataset.catalog)} tools, {len(dataset.queries)} queries")
    methods = await searches(dataset.catalog, load_settings(), parts)
    with bar(dataset.name) as progress:
        return await quality.measure(dataset, methods, progress, seed=SEED)


async def _latency(data: Path | None) -> tuple[Latency, str]:
    with tempfile.TemporaryDirectory(prefix="pegboard-bench-") as folder, bar("index for latency") as progress:
        file, catalog, texts, timed_on = _timed(data, Path(folder))
        STDERR.print(f"latency: {len(catalog)} tools ({timed_on}), {len(texts)} texts")
        return await latency.measure(catalog, file, texts, Path(folder) / "cache", progress), timed_on


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
