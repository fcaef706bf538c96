"""Sets that share a catalog go through a peer together: some take minutes to index it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pegboard.evaluation.datasets import ToolSet
from pegboard.model import ToolId
from pegboard.retrieval import Progress
from pegboard_bench.peers import BASELINES, PEERS, PeerRows, PeerRun, peer_rows
from pegboard_bench.peers.rows import SAMPLE

SAMPLE_TOGETHER = 400
"""Queries of several small sets together that slow peers see: all there are."""


async def peers_of(
    datasets: Sequence[ToolSet], folder: Path, progress: Progress, *, seed: int
) -> Iterator[tuple[ToolSet, PeerRows]]:
    """Every set with what the baselines and peers found in it; the sets are of one catalog."""
    merged = replace(datasets[0], queries=sum((dataset.queries for dataset in datasets), ()))
    sample = SAMPLE if len(datasets) == 1 else SAMPLE_TOGETHER
    rows = await peer_rows(merged, folder, progress, seed=seed, peers=(*BASELINES, *PEERS), sample=sample)
    return split(datasets, rows)


def split(datasets: Sequence[ToolSet], rows: PeerRows) -> Iterator[tuple[ToolSet, PeerRows]]:
    first = 0
    for dataset in datasets:
        numbers = range(first, first + len(dataset.queries))
        runs = {name: replace(run, rankings=_of(numbers, run)) for name, run in rows.runs.items()}
        yield dataset, PeerRows(runs=runs, missing=rows.missing)
        first = numbers.stop


def by_catalog(datasets: Sequence[ToolSet]) -> list[list[ToolSet]]:
    """Sets of one catalog together, in order of their first."""
    groups: dict[str, list[ToolSet]] = {}
    for dataset in datasets:
        groups.setdefault(dataset.catalog.fingerprint, []).append(dataset)
    return list(groups.values())


def _of(numbers: range, run: PeerRun) -> dict[int, tuple[ToolId, ...]]:
    return {number - numbers.start: ranking for number, ranking in run.rankings.items() if number in numbers}
