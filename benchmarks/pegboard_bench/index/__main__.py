"""`python -m pegboard_bench.index` writes `bench/results/index.json`: build, memory, time and recall of each index."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from pegboard.retrieval import nearest
from pegboard.retrieval.index import faiss
from pegboard_bench import results
from pegboard_bench.index.measure import Measured, measured_apart
from pegboard_bench.index.postgres import postgres_server, required_programs
from pegboard_bench.index.rank_loss import ranked
from pegboard_bench.index.server import chroma_server
from pegboard_bench.index.vectors import real, synthesised
from pegboard_bench.page import write_page

SET = "mcp_large"
RANKED = ("mcp_large", "livemcp_tasks", "mcpverse")
QUERIES = 200
SYNTHESISED = 100_000
SEED = 20261122
BACKENDS = ("exact", "faiss", "faiss_hnsw", "chroma", "pgvector", "qdrant")
ONLY_REAL = ("qdrant",)
"""Qdrant's engine in process compares all vectors in Python: not for a hundred thousand."""
STDERR = Console(stderr=True)


def main(
    data: Annotated[Path, typer.Option(envvar="PEGBOARD_DATA", help="Folder of the tool-retrieval sets.")],
    chroma: Annotated[Path, typer.Option(help="The program of scripts/install_chroma.py.")] = Path(
        ".demo/chroma/bin/chroma"
    ),
    cache: Annotated[Path, typer.Option(help="Folder for embeddings; a second run then takes minutes less.")] = Path(
        ".demo/embeddings"
    ),
    out: Annotated[Path, typer.Option(help="Folder for index.json.")] = Path("bench/results"),
    page: Annotated[Path | None, typer.Option(help="Write the results as a section of this page too.")] = None,
    most: Annotated[int, typer.Option("--synthesised", help="Vectors of the large catalog.")] = SYNTHESISED,
) -> None:
    """Measure the exact index, FAISS and those on servers on real and on synthesised vectors, one thread each."""
    cache.mkdir(parents=True, exist_ok=True)
    vectors = asyncio.run(real(data / SET, cache, QUERIES))
    figures: dict[str, float] = {}
    tables: dict[str, Any] = {
        "queries": len(vectors.queries),
        "real": len(vectors.rows),
        "synthesised": most,
        "approximate_above": faiss.APPROXIMATE_ABOVE,
        "candidates": nearest.CANDIDATES,
        "sets": list(RANKED),
    }
    for each in (vectors, synthesised(vectors, most, SEED)):
        for backend in BACKENDS if each is vectors else [name for name in BACKENDS if name not in ONLY_REAL]:
            STDERR.print(f"{len(each.rows)} vectors, {backend} …")
            _enter(figures, f"{len(each.rows)}/{backend}", measured_apart(backend, each, chroma))
    with (
        tempfile.TemporaryDirectory(prefix="pegboard-bench-") as folder,
        chroma_server(chroma, Path(folder)) as server,
        postgres_server(required_programs()) as database,
    ):
        for name in RANKED:
            STDERR.print(f"ranking, {name} …")
            _rank(figures, name, asyncio.run(ranked(data / name, cache, server.url, database.url)))
    path = results.write("index", command="make bench-index", seed=SEED, figures=figures, tables=tables, folder=out)
    STDERR.print(f"Written to {path}")
    if page is not None:
        write_page(page, out)
        STDERR.print(f"Written to {page}")


def _enter(figures: dict[str, float], name: str, found: Measured) -> None:
    figures[f"build_s/{name}"] = found.build_s
    figures[f"memory_mb/{name}"] = found.memory_mb
    for of_filter, times in found.ms.items():
        figures[f"p50_ms/{name}/{of_filter}"] = float(np.percentile(times, 50))
        figures[f"p95_ms/{name}/{of_filter}"] = float(np.percentile(times, 95))
        figures[f"recall@10/{name}/{of_filter}"] = found.recall[of_filter]


def _rank(figures: dict[str, float], name: str, found: Mapping[str, Mapping[str, float]]) -> None:
    for index, means in found.items():
        for metric, value in means.items():
            figures[f"{metric}/{name}/hybrid_{index}"] = value
        if index != "exact":
            figures[f"recall@5_loss/{name}/{index}"] = found["exact"]["recall@5"] - means["recall@5"]


if __name__ == "__main__":
    typer.run(main)
