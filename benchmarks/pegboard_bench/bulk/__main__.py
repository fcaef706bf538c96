"""`python -m pegboard_bench.bulk` writes `bench/results/bulk.json`: `pegboard index build` by one process and several,
killed and not, and a start with what it wrote. Each part can be measured by itself."""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from pegboard.compose.shard_jobs import EngineName
from pegboard.evaluation.datasets import CATALOG
from pegboard_bench import results
from pegboard_bench.bulk import cost, killed, throughput, warm
from pegboard_bench.bulk.catalogs import SENTENCE, rows_of, write_catalog
from pegboard_bench.page import write_page

SET = "mcp_large"
SEED = 20261127
COMMAND = "make bench-bulk"
STDERR = Console(stderr=True)


class Part(StrEnum):
    """What can be measured by itself."""

    THROUGHPUT = "throughput"
    KILLED = "killed"
    WARM = "warm"


class Engine(StrEnum):
    """Of the run that is killed."""

    LOCAL = "local"
    RAY = "ray"


def main(
    data: Annotated[Path, typer.Option(envvar="PEGBOARD_DATA", help="Folder of the tool-retrieval sets.")],
    part: Annotated[list[Part] | None, typer.Option(help="Only this part. Can be given more than once.")] = None,
    tools: Annotated[int, typer.Option(min=1, help="Tools of the throughput, and of the board that starts.")] = 4_000,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of the throughput, and starts with shards.")] = 3,
    workers: Annotated[int, typer.Option(min=1, help="Workers of the throughput.")] = os.cpu_count() or 1,
    shard_size: Annotated[int, typer.Option(min=1, help="Tools of a shard, but in the run that is killed.")] = 250,
    many: Annotated[int, typer.Option(min=1, help="Tools of the run that is killed.")] = 100_000,
    many_shard_size: Annotated[int, typer.Option(min=1, help="Tools of a shard of it.")] = 2_000,
    kills: Annotated[int, typer.Option(min=0, help="Times that it is killed.")] = 5,
    engine: Annotated[Engine, typer.Option(help="What it runs on, with two workers.")] = Engine.RAY,
    work: Annotated[
        Path | None,
        typer.Option(help="Folder for the run that is killed; of the same code, the one that nobody killed is kept."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for bulk.json.")] = Path("bench/results"),
    page: Annotated[Path | None, typer.Option(help="Write the results as a section of this page too.")] = None,
) -> None:
    """Measure `pegboard index build`: what a tool costs, what kills change, and what a start saves."""
    source, path = data / SET / CATALOG, out / "bulk.json"
    with tempfile.TemporaryDirectory(prefix="pegboard-bench-") as folder:
        catalog = Path(folder) / "catalog.jsonl.gz"
        measures: dict[Part, Callable[[], tuple[dict[str, float], dict[str, Any]]]] = {
            Part.THROUGHPUT: lambda: of_throughput(catalog, workers, shard_size, rounds),
            Part.KILLED: lambda: of_killed(source, many, many_shard_size, kills, engine.value, work or Path(folder)),
            Part.WARM: lambda: of_warm(catalog, workers, shard_size, rounds),
        }
        real = _written(source, tools, catalog)
        for each in part or list(Part):
            STDERR.print(f"{each.value} …")
            figures, table = measures[each]()
            if not path.exists():
                results.write("bulk", command=COMMAND, seed=SEED, figures={}, tables={}, folder=out)
            results.extend(path, each.value, figures=figures, table={"real": real, "load": os.getloadavg()[1]} | table)
            STDERR.print(f"Written to {path}")
    if page is not None:
        write_page(page, out)
        STDERR.print(f"Written to {page}")


def of_throughput(catalog: Path, workers: int, shard_size: int, rounds: int) -> tuple[dict[str, float], dict[str, Any]]:
    load = os.getloadavg()[0]
    parts = cost.figures(catalog)
    runs = throughput.measure(catalog, workers, shard_size, rounds, STDERR.print)
    table = {
        "tools": runs[throughput.ONE][0].tools,
        "rounds": rounds,
        "workers": workers,
        "shard_size": shard_size,
        "load_before": load,
        "cost_of": cost.TOOLS,
        "runs": {name: [asdict(run) for run in of_way] for name, of_way in runs.items()},
    }
    return throughput.figures(runs) | parts, table


def of_killed(
    source: Path, size: int, shard_size: int, kills: int, engine: EngineName, work: Path
) -> tuple[dict[str, float], dict[str, Any]]:
    """Two workers; the run that nobody kills comes first, and says how long a shard takes."""
    work.mkdir(parents=True, exist_ok=True)
    catalog, whole, broken = work / "many.jsonl.gz", work / "undisturbed", work / "killed"
    real = _written(source, size, catalog)
    job = killed.Job(catalog=catalog, tools=size, engine=engine, workers=2, shard_size=shard_size)
    seconds = killed.kept_seconds(work / "undisturbed.json", results.commit(), lambda: killed.undisturbed(job, whole))
    STDERR.print(f"undisturbed: {seconds:,.0f} s")
    moments = killed.moments(kills, SEED, seconds * shard_size * job.workers / size)
    found = killed.disturbed(job, broken, moments, STDERR.print)
    one, other = killed.digests(whole), killed.digests(broken)
    different = killed.differing(one, other)
    figures: dict[str, float] = {
        "kills": len(found.kills),
        "starts": found.starts,
        "went_on": found.went_on,
        "processes_left": found.left,
        "files": len(one),
        "files_that_differ": len(different),
        "bytes": sum(path.stat().st_size for path in whole.iterdir()),
        "undisturbed_s": seconds,
        "killed_s": found.seconds,
    }
    table = {
        "tools": size,
        "real": real,
        "sentence": SENTENCE,
        "engine": engine,
        "workers": job.workers,
        "shard_size": shard_size,
        "kills": [asdict(kill) for kill in found.kills],
        "different": different,
    }
    return figures, table


def of_warm(catalog: Path, workers: int, shard_size: int, starts: int) -> tuple[dict[str, float], dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="pegboard-bench-") as folder:
        shards = Path(folder)
        throughput.built(catalog, shards, "local", workers, shard_size)
        cold = warm.apart(catalog, None)
        with_shards = [warm.apart(catalog, shards) for _ in range(starts)]
    figures = {
        "warm_texts": max(each["texts"] for each in with_shards),
        "warm_texts_a_decision": max(each["texts_a_decision"] for each in with_shards),
        "cold_texts": cold["texts"],
        "cold_s": cold["seconds"],
        "cold_cpu_s": cold["cpu_s"],
        "warm_s": statistics.median(each["seconds"] for each in with_shards),
        "warm_cpu_s": statistics.median(each["cpu_s"] for each in with_shards),
    }
    return figures, {"tools": int(cold["tools"]), "starts": starts}


def _written(source: Path, size: int, path: Path) -> int:
    """Write a catalog of so many tools; how many of them are real."""
    rows, real = rows_of(source, size, SEED)
    write_catalog(rows, path)
    return real


if __name__ == "__main__":
    typer.run(main)
