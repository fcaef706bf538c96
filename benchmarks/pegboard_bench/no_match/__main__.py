"""Measures "nothing fits" on sets that it was not fitted on, and writes bench/results/no_match.json.

python -m pegboard_bench.no_match --data SETS
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from pegboard.compose import Parts, default_parts
from pegboard.evaluation.datasets import Query, ToolSet, read_set
from pegboard.model import ToolId
from pegboard.retrieval.no_match import shipped
from pegboard.settings import load_settings
from pegboard_bench import results
from pegboard_bench.fleet.searches import NONE, searches
from pegboard_bench.fleet.snapshot import catalog
from pegboard_bench.no_match.boards import AskedBoard, same_jobs, without_servers, without_tools
from pegboard_bench.no_match.searches import Verdict, figures, verdicts
from pegboard_bench.page import write_page

SETS = ("livemcp_tasks", "livemcp_steps", "livemcp_routes", "mcpverse", "graphtoolcall", "metatool")
MOST = 400
"""Requests of a set."""
SEED = 0
STDERR = Console(stderr=True)


def fleet() -> ToolSet:
    """The searches over the recorded fleet that some tool fits."""
    asked = enumerate(each for each in searches() if each.kind != NONE)
    queries = [
        Query(id=str(number), text=each.query, any_of=(tuple(ToolId(*tool.split("/", 1)) for tool in each.tools),))
        for number, each in asked
    ]
    return ToolSet(name="fleet", catalog=catalog(), queries=tuple(queries))


def whole_fleet() -> AskedBoard:
    """The recorded fleet with every search over it, also those for what no server has."""
    every = searches()
    return AskedBoard(
        board=catalog(),
        fitting=tuple(each.query for each in every if each.kind != NONE),
        unfitting=tuple(each.query for each in every if each.kind == NONE),
    )


def sampled(of_set: ToolSet) -> ToolSet:
    draw = random.Random(SEED)  # noqa: S311 - a sample, no secret
    return replace(of_set, queries=tuple(draw.sample(of_set.queries, min(MOST, len(of_set.queries)))))


async def measured(sets: Sequence[ToolSet], parts: Parts) -> dict[str, list[Verdict]]:
    found = {"fleet": await verdicts([whole_fleet()], parts)}
    for of_set in [fleet(), *map(sampled, sets)]:
        same = await same_jobs(of_set.catalog, parts)
        found[f"{of_set.name}/servers_off"] = await verdicts(without_servers(of_set, same, SEED), parts)
        found[f"{of_set.name}/tools_off"] = await verdicts(without_tools(of_set, same, SEED), parts)
        STDERR.print(f"{of_set.name}: {len(found[f'{of_set.name}/servers_off'])} requests")
    return found


def main(
    data: Annotated[Path, typer.Option(envvar="PEGBOARD_DATA", help="Folder of the sets.")],
    out: Annotated[Path, typer.Option(help="Folder for no_match.json.")] = Path("bench/results"),
    cache: Annotated[Path | None, typer.Option(help="Folder for embeddings; a second run then takes minutes.")] = None,
    page: Annotated[Path | None, typer.Option(help="Write the results as a section of this page too.")] = None,
) -> None:
    """Measure whether "nothing fits" is told from "something fits"."""
    settings = load_settings(profile="hybrid", cache_dir=cache) if cache else load_settings(profile="hybrid")
    found = asyncio.run(measured([read_set(data / name) for name in SETS], default_parts(settings)))
    shown = {figure: value for name, each in found.items() for figure, value in figures(name, each).items()}
    tables: dict[str, Any] = {
        "least": shipped().least,
        "wrong": {
            name: [[each.query, round(each.chance, 3)] for each in verdict if each.fits != each.said_fits]
            for name, verdict in found.items()
            if name.startswith("fleet")
        },
    }
    path = results.write("no_match", command="make bench-no-match", seed=SEED, figures=shown, tables=tables, folder=out)
    for name, value in results.read(path)["figures"].items():
        STDERR.print(f"{name} {value:.3f}")
    if page is not None:
        write_page(page, out)


if __name__ == "__main__":
    typer.run(main)
