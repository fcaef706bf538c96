"""`pegboard rank`: ranks the tools of a labelled set, one line per query."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegboard.apps.cli.atomic_files import staged
from pegboard.apps.cli.options import Json, Profile, Verbose, examples
from pegboard.apps.cli.output import plain, print_json, stdout, unwritable
from pegboard.errors import ConfigError

if TYPE_CHECKING:
    from pegboard.apps.cli.warm_board import Replaced
    from pegboard.evaluation.datasets import ToolSet
    from pegboard.evaluation.scorecard import Scorecard
    from pegboard.model import ToolId
    from pegboard.settings import Settings

EXAMPLES = examples(
    "Rank all tools, whatever their score",
    "pegboard rank sets/mcpverse --out run.jsonl --ungated",
    "Rank only the tools that an agent would get",
    "pegboard rank sets/mcpverse --out run.jsonl --profile attention",
    "How good that is, and on which queries it is bad",
    "pegboard rank mine --score",
)


def rank(
    context: typer.Context,
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="SET_DIR", help="Folder with a catalog (tools.json or catalog.jsonl) and queries.jsonl; .gz too."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="File for the rankings, as JSON lines.")
    ] = None,
    score: Annotated[
        bool,
        typer.Option("--score", help="Print recall@k, MRR and nDCG@5 with 95% intervals, and the worst queries."),
    ] = False,
    worst: Annotated[int, typer.Option("--worst", min=0, metavar="N", help="With --score: so many queries.")] = 10,
    profile: Profile = None,
    ungated: Annotated[
        bool, typer.Option("--ungated", help="Rank every tool: no threshold, no k, no recall target, no budget.")
    ] = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Rank the tools of a labelled set for each of its queries, and score that.

    A query is a line {"id": …, "query": …, "relevant": [[server, name], …]}. --out writes one line per query, {"id": …,
    "ranking": [[server, name], …]}, best first. Without --ungated, a ranking contains only the tools that the profile
    selects.
    """
    from pegboard.evaluation.datasets import read_set
    from pegboard.evaluation.scorecard import scorecard
    from pegboard.settings import load_settings

    settings = load_settings(profile=profile)
    if out is None and not score:
        raise ConfigError("Nothing would be done with the rankings.", remedy="Add --score, or --out FILE, or both.")
    if out is not None and not out.parent.is_dir():
        raise unwritable(out, "its folder does not exist")
    dataset = read_set(folder)
    report, rankings = asyncio.run(_rank(dataset, settings, context.obj, ungated=ungated))
    if out is not None:
        _write(out, rankings)
    card = scorecard(dataset, rankings, worst=worst) if score else None
    if as_json:
        print_json(report | {"out": out and str(out)} | ({} if card is None else card.to_dict()))
    else:
        stdout().print(
            f"{report['queries']} queries over {report['tools']} tools, profile {report['profile']}"
            f"{' (ungated)' if ungated else ''}: {report['seconds']:.1f} s to rank, "
            f"{report['index_seconds']:.1f} s for the index ({'cold' if report['cold'] else 'warm'})."
            f"{'' if out is None else f'{chr(10)}Written to {out}'}",
            markup=False,
        )
        if card is not None:
            _show(card)


def _show(card: Scorecard) -> None:
    from rich.table import Table

    console = stdout()
    table = Table("metric", "mean", "95% interval", title=f"{card.queries} labelled queries")
    for name, each in card.means.items():
        table.add_row(name, f"{each.mean:.3f}", f"{each.low:.3f} to {each.high:.3f}")
    console.print(table)
    if card.worst:
        console.print("\nWorst queries, by recall@5:")
    for query in card.worst:
        places = ", ".join(map(str, query.places)) or "not among them"
        console.print(f"\n{query.id}: {plain(query.text)}", markup=False)
        console.print(f"  wanted {', '.join(query.wanted)}, at {places}", markup=False)
        console.print(f"  got {', '.join(query.first) or 'nothing'}", markup=False)


async def _rank(
    dataset: ToolSet, settings: Settings, replaced: Replaced, *, ungated: bool
) -> tuple[dict[str, Any], dict[str, list[ToolId]]]:
    from pegboard.apps.cli.warm_board import warm_board
    from pegboard.evaluation import methods
    from pegboard.evaluation.progress_bar import bar

    started = time.perf_counter()
    board, cold = await warm_board(settings, dataset.catalog, replaced)
    search = methods.ungated(board) if ungated else methods.gated(board)
    warmed = time.perf_counter()
    rankings: dict[str, list[ToolId]] = {}
    with bar("ranking") as progress:
        for query in dataset.queries:
            rankings[query.id] = list(await search(query.text))
            progress(len(rankings), len(dataset.queries))
    report = {
        "set": dataset.name,
        "profile": settings.profile,
        "ungated": ungated,
        "queries": len(dataset.queries),
        "tools": len(dataset.catalog),
        "cold": cold,
        "index_seconds": round(warmed - started, 3),
        "seconds": round(time.perf_counter() - warmed, 3),
    }
    return report, rankings


def _write(out: Path, rankings: Mapping[str, Sequence[ToolId]]) -> None:
    rows = (
        json.dumps({"id": query, "ranking": [list(tool) for tool in ranking]}) + "\n"
        for query, ranking in rankings.items()
    )
    with staged(out) as file:
        file.writelines(row.encode() for row in rows)
