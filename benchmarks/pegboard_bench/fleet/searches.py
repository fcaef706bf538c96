"""Searches as models write them, over the snapshot of a fleet: is the right tool first, and is "none" told from some?

    python -m pegboard_bench.fleet.searches    # writes bench/results/searches.json

`fleet_searches.jsonl` has one search a line: its kind, the tools that are right (none where no tool fits), and the half
it belongs to: the first chance that a search means any tool was fitted on `fit`, today's on neither half.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pegboard.board_search import found_tools
from pegboard.catalog import Catalog
from pegboard.compose import Parts, build_routing, default_parts
from pegboard.gateways.mcp.gateway.meta_definitions import DEFAULT_LIMIT
from pegboard.model import Turn
from pegboard.retrieval.search_index import SearchIndex
from pegboard.settings import load_settings
from pegboard.stores import MemoryEmbeddings
from pegboard_bench import results
from pegboard_bench.fleet.snapshot import catalog
from pegboard_bench.page import write_page

NAME = "fleet_searches.jsonl"
HALVES = ("fit", "show")
EXACT = frozenset({"name", "case"})
"""Kinds of searches that write a tool's name, in any spelling."""
NONE = "none"
SERVICE = "service"
SEED = 0
"""Nothing here is drawn by chance."""
STDERR = Console(stderr=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSearch:
    """A search and the tools that are right, as ``server/name``; none if no tool of the fleet fits."""

    half: str
    kind: str
    query: str
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAnswer:
    """What a search found, best first, as many as an answer shows."""

    search: ToolSearch
    found: tuple[str, ...]

    @property
    def first(self) -> bool:
        return self.found[:1] != () and self.found[0] in self.search.tools

    @property
    def among(self) -> bool:
        return not set(self.found).isdisjoint(self.search.tools)


def searches() -> list[ToolSearch]:
    lines = (files("pegboard_bench.fleet") / NAME).read_text("utf-8").splitlines()
    return [ToolSearch(**{**line, "tools": tuple(line["tools"])}) for line in map(json.loads, lines)]


async def answers(board: Catalog, asked: Sequence[ToolSearch], parts: Parts | None = None) -> list[SearchAnswer]:
    """Every search as the MCP gateway answers it, with the settings of the package."""
    routing = build_routing(load_settings(), board, parts=parts)
    await routing.warm()
    index = SearchIndex(board.tools, board.servers)
    found = [await found_tools(routing, index, Turn.ask, search.query) for search in asked]
    return [
        SearchAnswer(search=search, found=tuple(str(each.tool) for each in result.tools[:DEFAULT_LIMIT]))
        for search, result in zip(asked, found, strict=True)
    ]


def figures(answered: Sequence[SearchAnswer], board: Catalog) -> dict[str, float]:
    """Shares of searches, over all and by half and kind. `detected` and `false` are about searches that no tool fits:
    the share of them that found nothing, and the share of the others that did. `filled` is the share of the first
    places that a named service's tools take, as many as it has."""
    real = [each for each in answered if each.search.kind != NONE]
    none = [each for each in answered if each.search.kind == NONE]
    found: dict[str, float] = {"searches": len(answered), "tools": len(board)}
    for name, of in [("all", HALVES), *((half, (half,)) for half in HALVES)]:
        some = [each for each in real if each.search.half in of]
        found[f"first/{name}"] = _share([each.first for each in some])
        found[f"first_five/{name}"] = _share([each.among for each in some])
        found[f"no_match/detected/{name}"] = _share([not each.found for each in none if each.search.half in of])
        found[f"no_match/false/{name}"] = _share([not each.found for each in some])
    for kind in sorted({each.search.kind for each in real}):
        of_kind = [each for each in real if each.search.kind == kind]
        found[f"first/{kind}"] = _share([each.first for each in of_kind])
        found[f"first_five/{kind}"] = _share([each.among for each in of_kind])
    found["first/exact_names"] = _share([each.first for each in real if each.search.kind in EXACT])
    found["filled/service"] = _share([_is_filled(each, board) for each in real if each.search.kind == SERVICE])
    return found


def _is_filled(answer: SearchAnswer, board: Catalog) -> bool:
    """Whether the first places are all taken by tools of the server that the search names."""
    server = answer.search.tools[0].partition("/")[0]
    places = answer.found[: len(board.of_server(server))]
    return bool(places) and all(tool.startswith(f"{server}/") for tool in places)


def _share(values: Sequence[bool]) -> float:
    return sum(values) / len(values) if values else 0.0


def main(
    out: Annotated[Path, typer.Option(help="Folder for searches.json.")] = Path("bench/results"),
    page: Annotated[Path | None, typer.Option(help="Write the results as a section of this page too.")] = None,
) -> None:
    """Measure searches over the snapshot of the fleet."""
    board, asked = catalog(), searches()
    parts = default_parts(load_settings(), embeddings=MemoryEmbeddings(1_000_000))
    answered = asyncio.run(answers(board, asked, parts))
    kinds = {kind: sum(search.kind == kind for search in asked) for kind in sorted({each.kind for each in asked})}
    path = results.write(
        "searches",
        command="make bench-searches",
        seed=SEED,
        figures=figures(answered, board),
        tables={
            "kinds": kinds,
            "wrong": [
                asdict(each.search) | {"found": each.found}
                for each in answered
                if (bool(each.found) if each.search.kind == NONE else not each.first)
            ],
        },
        folder=out,
    )
    for name, value in results.read(path)["figures"].items():
        STDERR.print(f"{name} {value:.3f}")
    if page is not None:
        write_page(page, out)


if __name__ == "__main__":
    typer.run(main)
