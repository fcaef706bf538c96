"""`python -m pegboard_bench.priced` writes `bench/results/priced.json`: what EHRR's two layers add to retrieval.

On one thread. The vectors are random, as the work does not depend on them; the encoder's own time belongs to neither
side. Every tool has been called, so that every average fades; the second figure has a call between two routes, which
the arrays follow.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import quantiles
from typing import Annotated

import numpy as np
import typer

from pegboard.catalog import Catalog
from pegboard.catalog.ingest import read_catalog
from pegboard.clock import SystemClock
from pegboard.evaluation.datasets import CATALOG
from pegboard.model import Floats, Mask, Outcome, Scores
from pegboard.routing.economics import Economics, Knowledge, PriceList, Pricing
from pegboard.routing.select import best_first
from pegboard_bench import results
from pegboard_bench.page import write_page
from pegboard_bench.synthetic import synthetic_catalog

LARGE = "mcp_large"
SYNTHETIC_SIZE = 1_080
DIMENSIONS = 384
ROUTES = 400
SEED = 20260728


def main(
    data: Annotated[
        Path | None, typer.Option(envvar="PEGBOARD_DATA", help="Folder of the tool-retrieval sets.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for priced.json.")] = Path("bench/results"),
    page: Annotated[Path | None, typer.Option(help="Write the results as a section of this page too.")] = None,
) -> None:
    """Measure retrieval alone, and what pricing adds to it."""
    large = data is not None and (data / LARGE / CATALOG).is_file()
    catalog = read_catalog(data / LARGE / CATALOG) if data and large else synthetic_catalog(SYNTHETIC_SIZE, SEED)
    figures = measure(catalog)
    tables = {"tools": len(catalog), "servers": len(catalog.servers), "routes": ROUTES, "synthetic": not large}
    path = results.write("priced", command="make bench-priced", seed=SEED, figures=figures, tables=tables, folder=out)
    for name, value in figures.items():
        typer.echo(f"{name}: {value:.3f}")
    typer.echo(f"Written to {path}", err=True)
    if page is not None:
        write_page(page, out)


def measure(catalog: Catalog, routes: int = ROUTES) -> dict[str, float]:
    """p50 and p95 over so many routes, milliseconds, by what was measured."""
    random = np.random.default_rng(SEED)
    tools, servers = _unit(random, len(catalog)), _unit(random, len(catalog.servers))
    allowed: Mask = np.ones(len(catalog), np.bool_)
    knowledge = Knowledge(None, SystemClock())
    outcomes = [
        Outcome(tool=tool.id, success=bool(random.random() < 0.8), latency_ms=float(random.exponential(500)))
        for tool in catalog.tools
    ]
    for outcome in outcomes:
        knowledge.observe(outcome)
    pricing = Pricing(catalog, Economics(knowledge=knowledge, prices=PriceList(tiers=True)))
    place = {name: at for at, name in enumerate(catalog.servers)}
    server_of = np.array([place[tool.server] for tool in catalog.tools], np.intp)
    queries = _unit(random, routes)

    def retrieve(query: Floats) -> Floats:
        return np.asarray(tools @ query)

    def price(query: Floats, cosines: Floats) -> None:
        of_servers = np.asarray((servers @ query)[server_of])
        priced = pricing.priced(
            Scores(values=cosines, scale="cosine", parts={"cosine": cosines, "server": of_servers}), allowed
        )
        best_first(priced.scores.values, priced.among)

    price(queries[0], retrieve(queries[0]))
    alone, added, learning = [], [], []
    for number, query in enumerate(queries):
        cosines = retrieve(query)
        alone.append(_taken(partial(retrieve, query)))
        added.append(_taken(partial(price, query, cosines)))
        knowledge.observe(outcomes[number % len(outcomes)])
        learning.append(_taken(partial(price, query, cosines)))
    size = f"{len(catalog)}"
    measured = {
        f"retrieval_{{}}_ms/{size}": alone,
        f"economics_added_{{}}_ms/{size}/cached": added,
        f"economics_added_{{}}_ms/{size}/learning": learning,
    }
    return {
        name.format(share): quantiles(times, n=20)[at]
        for name, times in measured.items()
        for share, at in (("p50", 9), ("p95", 18))
    }


def _unit(random: np.random.Generator, count: int) -> Floats:
    vectors = random.standard_normal((count, DIMENSIONS)).astype(np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


def _taken(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    typer.run(main)
