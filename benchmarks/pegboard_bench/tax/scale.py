"""The figure of Tool Attention §7.4: what N tools cost by every method, and whether the right one is still found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pegboard_bench.tax import made, phrases
from pegboard_bench.tax.boards import Place
from pegboard_bench.tax.job_run import TALLIES, runner
from pegboard_bench.tax.methods import methods
from pegboard_bench.tax.rows import row
from pegboard_bench.tax.tasks import Task
from pegboard_bench.tax.testbeds import Testbed

SIZES = (10, 20, 50, 120, 300, 1000, 3000, 10_000)
QUICK_SIZES = (10, 120)
FIRST = 10
"""Tools of the smallest catalog: what is asked for at every size, so that only distractors are added."""
TASKS = 60
DEAR = {"simple": 1000, "simple_minilm": 1000}
"""Methods that embed whole definitions, which takes long, and send ten of them whatever the size."""


def scaled(method: str, size: int, place: Place, seed: int) -> Mapping[str, Any]:
    return runner().run(_scaled(method, size, place, seed))


async def _scaled(method: str, size: int, place: Place, seed: int) -> Mapping[str, Any]:
    bed, tasks = _testbed(size), _tasks(seed)
    playing = methods()[method].make(place)
    await playing.begin(bed)
    rows = [row(task, await playing.play(task), *TALLIES) for task in tasks]
    long = [resident[-1] for resident in (each["resident"] for each in rows) if isinstance(resident, list)]
    return {
        "tokens": _mean([float(str(each["steady"])) for each in rows]),
        "resident": _mean(long),
        "recall": _mean([float(str(each["recall"])) for each in rows]),
    }


def _testbed(size: int) -> Testbed:
    catalog = made.many(size)
    asks, same = phrases.made(catalog)
    return Testbed(name=f"made{size}", catalog=catalog, asks=asks, same=same)


def _tasks(seed: int) -> tuple[Task, ...]:
    """About the tools of the smallest catalog, which every one has; single-step ones, so that steps are alike."""
    tasks = _testbed(FIRST).tasks(seed, 4 * TASKS)
    return tuple(task for task in tasks if task.kind == "single")[:TASKS]


def wanted(methods: Sequence[str], *, quick: bool) -> list[tuple[str, int]]:
    sizes = QUICK_SIZES if quick else SIZES
    return [(method, size) for method in methods for size in sizes if size <= DEAR.get(method, sizes[-1])]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
