"""What the rules of `pegboard summarize` do: `make bench-summaries` writes `bench/results/summaries.json`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from pegboard.catalog import Catalog
from pegboard.compose import Parts, default_parts
from pegboard.evaluation.datasets import QUERIES, ToolSet, read_set
from pegboard.evaluation.progress_bar import bar
from pegboard.evaluation.summary_quality import SEED, Retrieval, remembering, retrieval
from pegboard.model import Tool
from pegboard.retrieval import OnnxEncoder
from pegboard.retrieval.tool_texts import name_and_description
from pegboard.settings import load_settings
from pegboard.stores import MemoryEmbeddings
from pegboard.summaries import query_shaped
from pegboard_bench import results
from pegboard_bench.page import write_page

SETS = ("livemcp_tasks", "mcpverse", "real120", "metatool")
STDERR = Console(stderr=True)

Text = Callable[[Tool, Catalog], str]

TEXTS: Mapping[str, Text] = {
    "description": lambda tool, _: name_and_description(tool),
    "default": lambda tool, _: tool.summary,
    "rule": lambda tool, catalog: query_shaped(tool, catalog.counter),
}
"""What is embedded of a tool: all of its description, the default summary (its first 60 tokens), the rule's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    dataset: ToolSet
    of: Mapping[str, Retrieval]

    def figures(self) -> dict[str, float]:
        name, gain = self.dataset.name, self.of["rule"].gain(self.of["default"])
        found = {
            f"{metric}/{name}/{text}": value
            for text, each in self.of.items()
            for metric, value in each.payload().items()
        }
        interval = {"gain": gain.mean, "gain_low": gain.low, "gain_high": gain.high}
        return found | {f"f1@5_{suffix}/{name}/rule": value for suffix, value in interval.items()}


def main(
    data: Annotated[
        Path | None, typer.Option(envvar="PEGBOARD_DATA", help="Folder of the tool-retrieval sets.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for summaries.json.")] = Path("bench/results"),
    page: Annotated[Path | None, typer.Option(help="Write the results as a page to this file too.")] = None,
    sets: Annotated[str, typer.Option(help="Sets to measure, separated by commas.")] = ",".join(SETS),
) -> None:
    """Measure retrieval by `attention` with each kind of summary, and how long the summaries are."""
    wanted = sets.split(",")
    folders = [data / name for name in wanted if (data / name / QUERIES).is_file()] if data else []
    if missing := set(wanted) - {folder.name for folder in folders}:
        STDERR.print(
            f"Not measured, for want of data: {', '.join(sorted(missing))}. Set PEGBOARD_DATA to their folder."
        )
    if not folders:
        return
    measured = asyncio.run(_all(folders))
    path = results.write(
        "summaries",
        command="make bench-summaries",
        seed=SEED,
        figures={name: value for each in measured for name, value in each.figures().items()},
        tables={"sets": {each.dataset.name: _about(each.dataset) for each in measured}},
        folder=out,
    )
    Console().print(f"Written to {path}")
    if page is not None:
        write_page(page, out)
        Console().print(f"Written to {page}")


async def _all(folders: Sequence[Path]) -> list[Measured]:
    parts = default_parts(load_settings(), encoder=OnnxEncoder(), embeddings=MemoryEmbeddings(1_000_000))
    return [await measure(read_set(folder), remembering(parts)) for folder in folders]


async def measure(dataset: ToolSet, parts: Parts) -> Measured:
    STDERR.print(f"{dataset.name}: {len(dataset.catalog)} tools, {len(dataset.queries)} queries")
    found: dict[str, Retrieval] = {}
    for name, text in TEXTS.items():
        catalog = _with(dataset.catalog, text)
        with bar(f"{dataset.name}, {name}") as progress:
            found[name] = await retrieval(catalog, dataset.queries, load_settings(), parts, progress)
    return Measured(dataset=dataset, of=found)


def _with(catalog: Catalog, text: Text) -> Catalog:
    groups = [
        (server, [replace(tool, summary=text(tool, catalog)) for tool in catalog.of_server(name)])
        for name, server in catalog.servers.items()
    ]
    return Catalog.build(groups, counter=catalog.counter)


def _about(dataset: ToolSet) -> dict[str, Any]:
    return {"tools": len(dataset.catalog), "queries": len(dataset.queries)}


if __name__ == "__main__":
    typer.run(main)
