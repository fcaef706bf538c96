"""`python -m pegboard_bench.cache` writes `bench/results/cache.json`: the billed input of conversations, by method."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from pegboard.compose import default_parts
from pegboard.evaluation.datasets import QUERIES
from pegboard.evaluation.progress_bar import bar
from pegboard.retrieval import CachedEncoder, OnnxEncoder
from pegboard.settings import load_settings
from pegboard.stores import SqliteEmbeddings
from pegboard.stores.sqlite.backend import EMBEDDINGS_FILE
from pegboard_bench import results
from pegboard_bench.cache import boards, pictures, summary
from pegboard_bench.cache.boards import ToolBoard
from pegboard_bench.cache.grid import LIFETIMES, cells
from pegboard_bench.cache.summary import Row, measured
from pegboard_bench.page import write_page

SEED = 20261125
REAL = "real120"
MEASURED: Mapping[str, tuple[int, ...]] = {
    "claude-sonnet-5": LIFETIMES,
    "gpt-5.4": LIFETIMES,
    "gpt-5.6": (1800,),
    "gemini-2.5-flash": (300,),
}
"""Models and the lifetimes they are sold with; Google does not say how long implicit entries stay."""
AT_ONCE = 16
"""Cells that a process takes at once."""
STDERR = Console(stderr=True)


def main(
    data: Annotated[
        Path | None, typer.Option(envvar="PEGBOARD_DATA", help="Folder of the tool-retrieval sets.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for cache.json.")] = Path("bench/results"),
    page: Annotated[Path | None, typer.Option(help="Write the results as a section of this page too.")] = None,
    cache: Annotated[Path, typer.Option(help="Folder for embeddings; a second run then takes minutes less.")] = Path(
        ".demo/embeddings"
    ),
    sizes: Annotated[str, typer.Option(help="Tools of the synthetic boards, separated by commas.")] = "20,200,500",
) -> None:
    """Simulate every cell of the grid with every method under each model's rules."""
    cache.mkdir(parents=True, exist_ok=True)
    testbeds = asyncio.run(_testbeds(data, cache, [int(size) for size in sizes.split(",")]))
    rows = list(_rows({each.name: each for each in testbeds}))
    figures, tables = summary.figures(rows), summary.tables(rows)
    tables["testbeds"] = [[each.name, len(each.tokens), sum(each.tokens), each.constant] for each in testbeds]
    path = results.write("cache", command="make bench-cache", seed=SEED, figures=figures, tables=tables, folder=out)
    Console(width=None if sys.stdout.isatty() else 120).print(_shown(tables["models"]))
    STDERR.print(f"Written to {path}")
    if page is not None:
        pictures.draw(tables, page.parent)
        write_page(page, out)
        STDERR.print(f"Written to {page}")


async def _testbeds(data: Path | None, cache: Path, sizes: list[int]) -> list[ToolBoard]:
    settings, embeddings = load_settings(), SqliteEmbeddings(cache / EMBEDDINGS_FILE)
    parts = default_parts(settings, encoder=CachedEncoder(OnnxEncoder(), embeddings), embeddings=embeddings)
    found = [await boards.synthetic(size, settings, parts, SEED) for size in sizes]
    if data is None or not (data / REAL / QUERIES).is_file():
        STDERR.print(f"Not measured, for want of data: {REAL}. Set PEGBOARD_DATA to its folder.")
        return found
    return [await boards.real(data / REAL, settings, parts), *found]


def _rows(testbeds: Mapping[str, ToolBoard]) -> Iterator[Row]:
    """Cells of all models, by as many processes as there are cores; none inherits the encoder's threads."""
    jobs = [(cell, model) for model, lifetimes in MEASURED.items() for cell in cells(list(testbeds), lifetimes)]
    found, models = zip(*jobs, strict=True)
    workers = ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn"))
    with workers as pool, bar("cells") as progress:
        of_cells = [testbeds[cell.testbed] for cell in found]
        each = pool.map(measured, found, models, of_cells, repeat(SEED), chunksize=AT_ONCE)
        for done, row in enumerate(each, 1):
            progress(done, len(jobs))
            yield row


def _shown(models: Mapping[str, Mapping[str, Mapping[str, float]]]) -> Table:
    table = Table(title="billed input over all tools each time", title_justify="left")
    for column in ("model", "method", "median", "worst", "dearer by 1%", "cheapest within 2%", "recall"):
        table.add_column(column)
    for model, methods in models.items():
        for method, found in methods.items():
            values = [f"{found[name]:.3f}" for name in ("median", "worst", "dearer", "close", "recall")]
            table.add_row(model, method, *values)
    return table


if __name__ == "__main__":
    typer.run(main)
