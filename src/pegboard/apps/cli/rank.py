"""`pegboard rank`: ranks the tools of a labelled set, one line per query."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegboard.apps.cli.options import Json, Profile, Verbose, examples
from pegboard.apps.cli.output import print_json, stdout, unwritable

if TYPE_CHECKING:
    from pegboard.apps.cli.warm_board import Replaced
    from pegboard.evaluation.datasets import ToolSet
    from pegboard.model import ToolId
    from pegboard.settings import Settings

EXAMPLES = examples(
    "Rank all tools, whatever their score",
    "pegboard rank sets/mcpverse --out run.jsonl --ungated",
    "Rank only the tools that an agent would get",
    "pegboard rank sets/mcpverse --out run.jsonl --profile attention",
)


def rank(
    context: typer.Context,
    folder: Annotated[
        Path, typer.Argument(metavar="SET_DIR", help="Folder with catalog.jsonl.gz and queries.jsonl.gz.")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="File for the rankings, as JSON lines.")],
    profile: Profile = None,
    ungated: Annotated[
        bool, typer.Option("--ungated", help="Rank every tool: no threshold, no k, no recall target, no budget.")
    ] = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Rank the tools of a labelled set for each of its queries.

    Writes one line per query, {"id": …, "ranking": [[server, name], …]}, best first. Without --ungated, a ranking
    contains only the tools that the profile selects.
    """
    from pegboard.evaluation.datasets import read_set
    from pegboard.settings import load_settings

    settings = load_settings(profile=profile)
    if not out.parent.is_dir():
        raise unwritable(out, "its folder does not exist")
    report = asyncio.run(_rank(read_set(folder), out, settings, context.obj, ungated=ungated))
    if as_json:
        print_json(report)
    else:
        stdout().print(
            f"{report['queries']} queries over {report['tools']} tools, profile {report['profile']}"
            f"{' (ungated)' if ungated else ''}: {report['seconds']:.1f} s to rank, "
            f"{report['index_seconds']:.1f} s for the index ({'cold' if report['cold'] else 'warm'}).\n"
            f"Written to {out}",
            markup=False,
        )


async def _rank(
    dataset: ToolSet, out: Path, settings: Settings, replaced: Replaced, *, ungated: bool
) -> dict[str, Any]:
    from pegboard.apps.cli.warm_board import warm_board
    from pegboard.evaluation import methods
    from pegboard.evaluation.progress_bar import bar

    started = time.perf_counter()
    board, cold = await warm_board(settings, dataset.catalog, replaced)
    search = methods.ungated(board) if ungated else methods.gated(board)
    warmed = time.perf_counter()
    rankings: list[tuple[str, list[ToolId]]] = []
    with bar("ranking") as progress:
        for query in dataset.queries:
            rankings.append((query.id, list(await search(query.text))))
            progress(len(rankings), len(dataset.queries))
    _write(out, rankings)
    return {
        "set": dataset.name,
        "out": str(out),
        "profile": settings.profile,
        "ungated": ungated,
        "queries": len(dataset.queries),
        "tools": len(dataset.catalog),
        "cold": cold,
        "index_seconds": round(warmed - started, 3),
        "seconds": round(time.perf_counter() - warmed, 3),
    }


def _write(out: Path, rankings: list[tuple[str, list[ToolId]]]) -> None:
    rows = (
        json.dumps({"id": query, "ranking": [list(tool) for tool in ranking]}) + "\n" for query, ranking in rankings
    )
    try:
        with out.open("w", encoding="utf-8") as lines:
            lines.writelines(rows)
    except OSError as error:
        raise unwritable(out, str(error)) from error
