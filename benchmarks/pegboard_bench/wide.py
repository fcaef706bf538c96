"""Ranking among thousands of tools, and requests that name a service.

    python -m pegboard_bench.wide --data SETS    # writes bench/results/wide.json

The scored sets stand on one board with the tools of public catalogs (`wide_board`). Each request is asked as it stands,
and with the name of its tool's service put in; of the latter it is counted how often a tool of that service is first.
Names that are ordinary words (`linear`, `google maps`) are put in as they are typed, in lower case, and counted apart.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from pegboard.catalog import Catalog
from pegboard.compose import Parts, build_routing, default_parts
from pegboard.evaluation import ranking_metrics
from pegboard.evaluation.datasets import Query, ToolSet, read_set
from pegboard.evaluation.methods import Search, bm25, by_fusion, fusions_without, ungated
from pegboard.model import Tool
from pegboard.retrieval import OnnxEncoder
from pegboard.retrieval.name_words import GENERIC
from pegboard.retrieval.service_names import TECHNICAL
from pegboard.retrieval.speller import common_words
from pegboard.retrieval.words import FUNCTION_WORDS, raw_words
from pegboard.settings import Settings, load_settings
from pegboard_bench import results
from pegboard_bench.rank import SETS
from pegboard_bench.wide_board import wide_sets

SEED = 4
FORMS = ("{query} Use {service} for it.", "In {service}: {query}", "{query} (on {service})", "With {service}, {query}")
METRICS = ("recall@5", "mrr")
Named = tuple[str, frozenset[str], int]
"""A request with a service's name in it, the servers of that name, and the number of the query."""
STDERR = Console(stderr=True)


def main(
    data: Annotated[Path, typer.Option(envvar="PEGBOARD_DATA", help="Folder of the tool-retrieval sets.")],
    out: Annotated[Path, typer.Option(help="Folder for wide.json.")] = Path("bench/results"),
    cache: Annotated[Path | None, typer.Option(help="Folder for embeddings; they take most of the time.")] = None,
    longest: Annotated[
        int,
        typer.Option(help="Tools of the other catalogs with texts of as many characters are left out; 0 takes all."),
    ] = 0,
    most: Annotated[int, typer.Option(help="Requests of each set, at most.")] = 100,
) -> None:
    """Measure ranking among thousands of tools."""
    settings = load_settings(profile="hybrid", cache_dir=cache)
    figures = asyncio.run(_figures(data, settings, longest, most))
    tables = {"longest": longest, "most": most}
    path = results.write(
        "wide", command="python -m pegboard_bench.wide", seed=SEED, figures=figures, tables=tables, folder=out
    )
    STDERR.print(f"Written to {path}")


async def _figures(data: Path, settings: Settings, longest: int, most: int) -> dict[str, float]:
    sets = [_sampled(read_set(data / name), most) for name in SETS]
    wide = wide_sets(data, sets, longest=longest)
    found = {"tools/wide": float(len(wide[0].catalog))}
    parts = default_parts(settings, encoder=OnnxEncoder())
    for board, group in (("own", [[each] for each in sets]), ("wide", [wide])):
        for of_board in group:
            methods = await _methods(of_board[0].catalog, settings, parts)
            for each in of_board:
                STDERR.print(f"{board}: {each.name}")
                found |= {f"{name}/{board}": value for name, value in (await _of_set(each, methods)).items()}
    return found


def _sampled(dataset: ToolSet, most: int) -> ToolSet:
    draw = random.Random(SEED)  # noqa: S311  # a sample, no secret
    return replace(dataset, queries=tuple(draw.sample(dataset.queries, min(most, len(dataset.queries)))))


async def _methods(catalog: Catalog, settings: Settings, parts: Parts) -> dict[str, Search]:
    board = build_routing(settings, catalog, parts=parts)
    await board.warm()
    without = {f"hybrid_without_{part}": by_fusion(board, fusion) for part, fusion in fusions_without().items()}
    return {"hybrid": ungated(board), "bm25f": bm25(catalog), **without}


async def _of_set(dataset: ToolSet, methods: Mapping[str, Search]) -> dict[str, float]:
    canonical = ranking_metrics.canonical_ids(dataset.catalog)
    goals = [ranking_metrics.goals(query.relevant, query.any_of, canonical) for query in dataset.queries]
    asked = {"named": list(named(dataset)), "ordinary": list(named(dataset, ordinary=True))}
    found: dict[str, float] = {}
    for method, search in methods.items():
        rows = [
            ranking_metrics.score(goal, await search(query.text), canonical)
            for query, goal in zip(dataset.queries, goals, strict=True)
        ]
        found |= {f"{metric}/{dataset.name}/{method}": _mean([row[metric] for row in rows]) for metric in METRICS}
        if method in ("hybrid", "hybrid_without_named", "bm25f"):
            for kind, requests in asked.items():
                found |= await _of_named(kind, dataset, method, search, requests)
    return found


async def _of_named(
    kind: str, dataset: ToolSet, method: str, search: Search, asked: Sequence[Named]
) -> dict[str, float]:
    """How often a named service is first, and the recall."""
    if not asked:
        return {}
    canonical = ranking_metrics.canonical_ids(dataset.catalog)
    goals = [ranking_metrics.goals(query.relevant, query.any_of, canonical) for query in dataset.queries]
    ranked = [await search(text) for text, _, _ in asked]
    firsts = [answer[0].server in servers for answer, (_, servers, _) in zip(ranked, asked, strict=True)]
    again = [
        ranking_metrics.score(goals[number], answer, canonical)["recall@5"]
        for answer, (_, _, number) in zip(ranked, asked, strict=True)
    ]
    return {
        f"{kind}/{dataset.name}/{method}": float(len(asked)),
        f"{kind}_first/{dataset.name}/{method}": _mean(firsts),
        f"{kind}_recall@5/{dataset.name}/{method}": _mean(again),
    }


def named(dataset: ToolSet, *, ordinary: bool = False) -> Iterator[Named]:
    """Requests with the service's name put in. Only for tools of one server, whose name is or is not ``ordinary``."""
    draw = random.Random(SEED)  # noqa: S311  # a sample, no secret
    for number, query in enumerate(dataset.queries):
        service = _service(query)
        if service and all(word in common_words() for word in service) == ordinary:
            form = draw.choice(FORMS)
            text = form.format(query=query.text.strip(), service=" ".join(service))
            yield text, _servers(service, dataset.catalog.tools), number


def _service(query: Query) -> list[str]:
    servers = {tool.server for tool in query.relevant}
    words = raw_words(servers.pop().rpartition("/")[2]) if len(servers) == 1 else []
    return [word for word in words if word not in TECHNICAL | GENERIC | FUNCTION_WORDS]


def _servers(service: Sequence[str], tools: Sequence[Tool]) -> frozenset[str]:
    """The servers with all these words in their names, or at the beginning of a tool's name."""
    words = set(service)
    return frozenset(
        tool.server for tool in tools if words <= {*raw_words(tool.server), *raw_words(tool.name)[: len(words)]}
    )


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


if __name__ == "__main__":
    typer.run(main)
