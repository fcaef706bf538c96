"""What indexing takes with one process, with local workers and with Ray's, in alternation."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pegboard.compose.shard_jobs import EngineName

ONE = "one"
"""The way whose speed the others are compared with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """``seconds`` from the first shard's begin to the last one's end; ``start_s`` from the start of the command to that
    begin; ``whole_s`` from its start to its end; ``cpu_s`` of the processor, and ``busy_s`` of the clock, in shards."""

    tools: int
    workers: int
    seconds: float
    start_s: float
    whole_s: float
    cpu_s: float
    busy_s: float

    @property
    def tools_per_s(self) -> float:
        return self.tools / self.seconds


def ways(cores: int) -> dict[str, tuple[EngineName, int]]:
    """Engine and workers of each way that can be measured here."""
    found: dict[str, tuple[EngineName, int]] = {ONE: ("local", 1), "local": ("local", cores)}
    return found | ({"ray": ("ray", cores)} if find_spec("ray") else {})


def measure(
    catalog: Path, cores: int, shard_size: int, rounds: int, say: Callable[[str], None]
) -> dict[str, list[Run]]:
    """Every way once a round; every other round in the opposite order."""
    found: dict[str, list[Run]] = {name: [] for name in ways(cores)}
    for number in range(rounds):
        order = list(ways(cores).items())
        for name, (engine, workers) in order if number % 2 == 0 else reversed(order):
            run = one_run(catalog, engine, workers, shard_size)
            found[name].append(run)
            say(
                f"round {number + 1} of {rounds}, {name}: {run.tools_per_s:.1f} tools/s, "
                f"{1000 * run.cpu_s / run.tools:.1f} ms of the processor a tool"
            )
    return found


def one_run(catalog: Path, engine: EngineName, workers: int, shard_size: int) -> Run:
    """One run of the command in a process of its own, into an empty folder."""
    with tempfile.TemporaryDirectory(prefix="pegboard-bench-") as folder:
        return built(catalog, Path(folder), engine, workers, shard_size)


def built(catalog: Path, out: Path, engine: EngineName, workers: int, shard_size: int) -> Run:
    """The same into a folder that is kept."""
    with tempfile.TemporaryDirectory(prefix="pegboard-bench-") as notes:
        words = [str(catalog), str(out), engine, str(workers), str(shard_size), notes]
        began = time.monotonic()
        subprocess.run([sys.executable, "-m", "pegboard_bench.bulk.one_run", *words], check=True)
        whole = time.monotonic() - began
        shards = [json.loads(path.read_text("utf-8")) for path in Path(notes).glob("*.json")]
    return summed(shards, workers, began, whole)


def summed(shards: Sequence[Mapping[str, Any]], workers: int, began: float, whole_s: float) -> Run:
    """A run from the notes of its shards."""
    first = min(each["began"] for each in shards)
    return Run(
        tools=sum(each["tools"] for each in shards),
        workers=workers,
        seconds=max(each["ended"] for each in shards) - first,
        start_s=first - began,
        whole_s=whole_s,
        cpu_s=sum(each["cpu_s"] for each in shards),
        busy_s=sum(each["ended"] - each["began"] for each in shards),
    )


def figures(runs: Mapping[str, Sequence[Run]]) -> dict[str, float]:
    """Medians over the rounds, with the least and the most; a ratio is that of the two runs of a round."""
    found: dict[str, float] = {}
    for name, of_way in runs.items():
        values: dict[str, list[float]] = {
            "tools_per_s": [run.tools_per_s for run in of_way],
            "cpu_ms": [1000 * run.cpu_s / run.tools for run in of_way],
            "wall_ms": [1000 * run.workers * run.seconds / run.tools for run in of_way],
            "cores_a_worker": [run.cpu_s / run.busy_s for run in of_way],
            "start_s": [run.start_s for run in of_way],
        }
        if name != ONE:
            pairs = list(zip(of_way, runs[ONE], strict=True))
            values["ratio"] = [run.tools_per_s / (run.workers * one.tools_per_s) for run, one in pairs]
            values["ratio_with_start"] = [one.whole_s / (run.workers * run.whole_s) for run, one in pairs]
        for figure, each in values.items():
            found[f"{figure}/{name}"] = statistics.median(each)
            found |= {f"{figure}_least/{name}": min(each), f"{figure}_most/{name}": max(each)}
    return found
