"""`python -m pegboard_bench.simulate` writes `bench/results/simulate.json`: routing by price, latency and failure."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from pegboard.compose import default_parts
from pegboard.evaluation.datasets import QUERIES, read_set
from pegboard.retrieval import CachedEncoder, OnnxEncoder
from pegboard.settings import load_settings
from pegboard.stores import SqliteEmbeddings
from pegboard.stores.sqlite.backend import EMBEDDINGS_FILE
from pegboard_bench import results
from pegboard_bench.page import write_page
from pegboard_bench.simulate import grid, inputs, pictures
from pegboard_bench.simulate.run import SETS, Asked
from pegboard_bench.simulate.summary import Summary
from pegboard_bench.simulate.world import frozen
from pegboard_bench.sources import source_files

SEED = 20261122
"""Of the resampling; the worlds have theirs."""
SHOWN = ("success", "invalid_calls", "tokens", "cost_usd", "seconds_to_success", "utility", "mrr", "recall@3")
SOURCES = (
    "averages.py",
    "evaluation/ranking_metrics.py",
    *(
        f"bench/simulate/{name}.py"
        for name in ("calls", "chooser", "learnt", "policies", "run", "tasks", "tiers", "world")
    ),
    "routing/economics/*.py",
)
"""What the outcome of a world depends on: another text of one of them, and worlds are played anew."""
STDERR = Console(stderr=True)


def main(
    data: Annotated[
        Path | None, typer.Option(envvar="PEGBOARD_DATA", help="Folder of the tool-retrieval sets.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for simulate.json.")] = Path("bench/results"),
    page: Annotated[Path | None, typer.Option(help="Write the results as a section of this page too.")] = None,
    cache: Annotated[Path, typer.Option(help="Folder for embeddings and for worlds that were played.")] = Path(
        ".demo/embeddings"
    ),
    quick: Annotated[bool, typer.Option(help="Two worlds of two kinds, into simulate-quick.json.")] = False,
) -> None:
    """Play every policy in every world of the grid. A run that was interrupted goes on where it was."""
    if data is None or not all((data / folder / QUERIES).is_file() for folder in inputs.FOLDERS.values()):
        STDERR.print(f"Not measured, for want of data: {', '.join(inputs.FOLDERS.values())}. Set PEGBOARD_DATA.")
        return
    cache.mkdir(parents=True, exist_ok=True)
    inputs.check_frozen(read_set(data / inputs.FOLDERS["tasks"]).catalog)
    asked = asyncio.run(_asked(data, cache))
    kept = cache / "simulate" / _of(asked)
    found = grid.played(grid.cells(quick=quick), grid.seeds(quick=quick), asked, kept)
    summary = Summary(found=found, asked=asked, seed=SEED)
    tables = summary.tables() | {"fingerprints": {str(seed): frozen()[seed] for seed in grid.seeds(quick=quick)}}
    path = results.write(
        "simulate-quick" if quick else "simulate",
        command="make bench-simulate",
        seed=SEED,
        figures=summary.figures(),
        tables=tables,
        folder=out,
    )
    console = Console(width=None if sys.stdout.isatty() else 140)
    for name in SETS:
        console.print(_shown(name, tables["policies"][name]))
    STDERR.print(f"Written to {path}")
    if page is not None and not quick:
        pictures.draw(tables, page.parent)
        write_page(page, out)
        STDERR.print(f"Written to {page}")


async def _asked(data: Path, cache: Path) -> dict[str, Asked]:
    settings, embeddings = load_settings(), SqliteEmbeddings(cache / EMBEDDINGS_FILE)
    parts = default_parts(settings, encoder=CachedEncoder(OnnxEncoder(), embeddings), embeddings=embeddings)
    return await inputs.read(data, settings, parts)


def _of(asked: Mapping[str, Asked]) -> str:
    """A folder for what these sources make of these inputs."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in source_files(SOURCES)))
    for each in asked.values():
        digest.update(repr((each.queries, each.tokens, each.tool_tokens)).encode())
        for values in (each.relevance.servers, each.relevance.tools, each.relevance.hybrid):
            digest.update(values.tobytes())
    return digest.hexdigest()[:16]


def _shown(name: str, policies: Mapping[str, Mapping[str, Any]]) -> Table:
    table = Table(title=name, title_justify="left")
    table.add_column("policy")
    for metric in SHOWN:
        table.add_column(metric, justify="right")
    for policy, metrics in policies.items():
        table.add_row(policy, *(f"{metrics[metric][0]:,.3f}" for metric in SHOWN))
    return table


if __name__ == "__main__":
    typer.run(main)
