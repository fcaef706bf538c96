"""The cells that are played, each in every world: by as many processes as there are cores, and kept as they end."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from pegboard.evaluation.progress_bar import bar
from pegboard_bench.simulate.run import SETS, Asked, Cell, Played, run
from pegboard_bench.simulate.world import MOST_COPIES, SEEDS

HETEROGENEITY = (0.0, 0.25, 0.5, 0.75, 1.0)
COPIES = (1, MOST_COPIES)
PASSES = 4
"""Of the cells where servers are most different: how much learning does."""


def cells(*, quick: bool = False) -> list[Cell]:
    """With the worlds as they are drawn first: `Cell(asked=...)` of each set is the headline."""
    levels, copies = ((1.0, 0.0), (1,)) if quick else (HETEROGENEITY[::-1], COPIES)
    return [
        Cell(asked=asked, heterogeneity=level, copies=each, passes=PASSES if level == 1 else 1)
        for level, each, asked in product(levels, copies, SETS)
    ]


def seeds(*, quick: bool = False) -> range:
    return SEEDS[:2] if quick else SEEDS


_ASKED: dict[str, Asked] = {}
"""Of a worker: what is asked, sent to it once."""


def played(
    wanted: Sequence[Cell], seeds: Sequence[int], asked: Mapping[str, Asked], kept: Path | None = None
) -> dict[Cell, Played]:
    """Every cell with arrays of all seeds, shape (seeds, passes, tasks, measures).

    What is found in the folder ``kept`` is not played again.
    """
    jobs = list(product(wanted, seeds))
    found: dict[tuple[Cell, int], Played] = {job: there for job in jobs if (there := _read(job, kept)) is not None}
    with bar("worlds") as progress:
        progress(len(found), len(jobs))
        for job, result in _run([job for job in jobs if job not in found], asked):
            found[job] = result
            _write(job, result, kept)
            progress(len(found), len(jobs))
    return {cell: _together([found[cell, seed] for seed in seeds]) for cell in wanted}


def _run(jobs: Sequence[tuple[Cell, int]], asked: Mapping[str, Asked]) -> Iterator[tuple[tuple[Cell, int], Played]]:
    """As they end; none inherits the encoder's threads."""
    if not jobs:
        return
    context = get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context, initializer=_begin, initargs=(dict(asked),)) as pool:
        under_way = {pool.submit(_one, *job): job for job in jobs}
        for each in as_completed(under_way):
            yield under_way[each], each.result()


def _begin(asked: Mapping[str, Asked]) -> None:
    _ASKED.update(asked)


def _one(cell: Cell, seed: int) -> Played:
    return run(cell, _ASKED[cell.asked], seed)


def _together(each: Iterable[Played]) -> Played:
    worlds = list(each)
    return {name: np.array([world[name] for world in worlds]) for name in worlds[0]}


def _file(job: tuple[Cell, int], kept: Path) -> Path:
    cell, seed = job
    name = f"{cell.asked}-h{cell.heterogeneity:g}-copies{cell.copies}-passes{cell.passes}-seed{seed}.npz"
    return kept / name


def _read(job: tuple[Cell, int], kept: Path | None) -> Played | None:
    if kept is None or not (path := _file(job, kept)).exists():
        return None
    with np.load(path) as arrays:
        return dict(arrays)


def _write(job: tuple[Cell, int], result: Played, kept: Path | None) -> None:
    """Whole or not at all."""
    if kept is None:
        return
    kept.mkdir(parents=True, exist_ok=True)
    path = _file(job, kept)
    draft = path.with_suffix(".tmp.npz")
    np.savez_compressed(draft, allow_pickle=False, **result)
    draft.replace(path)
