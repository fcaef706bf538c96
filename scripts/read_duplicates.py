"""Prints pairs of tools around the limits from which on they are duplicates, to be read when the encoder changes.

python scripts/read_duplicates.py CATALOG [--around 0.65]
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

import numpy as np

from pegboard.catalog import Catalog
from pegboard.catalog.ingest import read_catalog
from pegboard.compose import build_routing
from pegboard.model import Floats
from pegboard.retrieval import duplicates
from pegboard.settings import load_settings

WIDTH = 0.025


def pairs(catalog: Catalog, vectors: Floats, around: float) -> list[tuple[float, int, int]]:
    """Pairs of different servers whose names agree as that limit asks, with a cosine near it."""
    names = [duplicates._job_name(tool) for tool in catalog.tools]
    agree = duplicates.JobName.resembles if around > duplicates.SAME_NAME else _same
    cosines = vectors @ vectors.T
    rows, columns = np.nonzero(np.triu(abs(cosines - around) < WIDTH, 1))
    return sorted(
        (float(cosines[row, column]), row, column)
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True)
        if catalog.tools[row].server != catalog.tools[column].server and agree(names[row], names[column])
    )


def _same(one: duplicates.JobName, other: duplicates.JobName) -> bool:
    return one.written == other.written


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("catalog", type=Path)
    parser.add_argument("--around", type=float, default=duplicates.SAME_NAME)
    options = parser.parse_args()
    catalog = read_catalog(options.catalog)
    vectors = asyncio.run(build_routing(load_settings(), catalog).vectors())
    for cosine, row, column in pairs(catalog, vectors, options.around):
        one, other = catalog.tools[row], catalog.tools[column]
        print(f"{cosine:.3f}  {one.id} | {other.id}\n       {one.description[:70]!r} | {other.description[:70]!r}")
    groups = duplicates.duplicate_groups(catalog.tools, vectors)
    found = np.bincount(groups, minlength=len(groups))
    print(f"{len(catalog)} tools, {(found > 1).sum()} groups of {found[found > 1].sum()} tools")


if __name__ == "__main__":
    main()
