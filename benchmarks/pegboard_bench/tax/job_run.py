"""One job: all tasks of a testbed under one seed, played by one method."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pegboard_bench.tax.ablations import VARIANTS
from pegboard_bench.tax.boards import Place
from pegboard_bench.tax.methods import methods
from pegboard_bench.tax.rows import Row, Tally, row
from pegboard_bench.tax.testbeds import testbed


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    testbed: str
    method: str
    seed: int
    tasks: int

    @property
    def name(self) -> str:
        return f"{self.testbed}-{self.method}-{self.tasks}-seed{self.seed}"


TALLIES = (Tally(), Tally("o200k_base"))


def play(job: Job, place: Place) -> Mapping[str, Any]:
    """``rows`` of the tasks, and ``ms``, the mean time of a step without counting."""
    return runner().run(played(job, place))


async def played(job: Job, place: Place) -> Mapping[str, Any]:
    bed = testbed(job.testbed, place.data)
    make = methods()[job.method].make if job.method in methods() else VARIANTS[job.method][1]
    method = make(place)
    await method.begin(bed)
    rows: list[Row] = []
    took = steps = 0.0
    for task in bed.tasks(job.seed, job.tasks):
        started = time.perf_counter()
        sends = await method.play(task)
        took += time.perf_counter() - started
        steps += len(sends)
        rows.append(row(task, sends, *TALLIES))
    return {"rows": rows, "ms": 1000 * took / max(1.0, steps)}


_RUNNER: list[asyncio.Runner] = []


def runner() -> asyncio.Runner:
    """The one event loop of this process: stores belong to the loop that they were opened in."""
    if not _RUNNER:
        _RUNNER.append(asyncio.Runner())
    return _RUNNER[0]
