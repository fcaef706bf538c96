"""`pegboard rank`: a whole labelled set, one ranking a line."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegboard.apps.cli.options import Json, Profile, Verbose, examples
from pegboard.errors import ConfigError

if TYPE_CHECKING:
    from pegboard.apps.cli.boards import Replaced
    from pegboard.bench.datasets import ToolSet
    from pegboard.model import ToolId
    from pegboard.settings import Settings

EXAMPLES = examples(
    "The order of all tools, whatever their score",
    "pegboard rank sets/mcpverse --out run.jsonl --ungated",
    "What an agent would really be given",
    "pegboard rank sets/mcpverse --out run.jsonl --profile attention",
)


def rank(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="SET_DIR", help="Holds catalog.jsonl.gz and queries.jsonl.gz.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the rankings go, as JSON lines.")],
    profile: Profile = None,
    ungated: Annotated[
        bool, typer.Option("--ungated", help="Rank every tool: no threshold, no k, no recall target, no budget.")
    ] = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Rank the tools of a labelled set for each of its queries.

    Writes one line a query, {"id": …, "ranking": [[server, name], …]}, best first. Without --ungated the ranking
    holds the tools that the profile would hand out.
    """
    from pegboard.apps.cli.output import print_json, stdout
    from pegboard.bench.datasets import read_set
    from pegboard.settings import load_settings

    settings = load_settings(profile=profile)
    if not out.parent.is_dir():
        raise _unwritable(out, "its folder does not exist")
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
    from pegboard.apps.cli.boards import warm_board
    from pegboard.bench import methods
    from pegboard.bench.progress import bar

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
        raise _unwritable(out, str(error)) from error


def _unwritable(out: Path, why: str) -> ConfigError:
    return ConfigError(f"Cannot write {str(out)!r}: {why}.", remedy="Name another file with --out.")
