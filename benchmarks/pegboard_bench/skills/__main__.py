"""`python -m pegboard_bench.skills` writes `bench/results/skills.json`: public skills found by bodies and without."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from pegboard import Board
from pegboard.errors import ConfigError
from pegboard.proportions import paired_difference, wilson
from pegboard_bench import results
from pegboard_bench.page import write_page
from pegboard_bench.sets.repositories import Repositories
from pegboard_bench.skills.sources import FOLDERS, Request, requests, unknown, without_bodies, write_skills

CUTS = (1, 3, 5, 10)
WAYS = ("bodies", "descriptions")
STDERR = Console(stderr=True)
Ranks = Sequence[int | None]


def searched(folder: Path, asked: Sequence[Request]) -> list[list[str]]:
    """What is found for each request, by name and in order: ten skills at most."""
    with Board(skills=folder, most={"skill": max(CUTS)}) as board:
        answers = [board.search_now(request.text, kinds=["skill"]).items for request in asked]
    return [[Path(item.address).parent.name for item in items] for items in answers]


def rank(found: Sequence[str], request: Request) -> int | None:
    """The place of the first skill that would do, from 1; None where none was found."""
    return next((place for place, name in enumerate(found, start=1) if name in request.skills), None)


def figures_of(found: Mapping[str, Ranks]) -> dict[str, float]:
    """Shares of requests with a skill that would do among the first k, with Wilson's intervals; the paired difference
    at five with Newcombe's."""
    figures: dict[str, float] = {}
    for way, places in found.items():
        for cut in CUTS:
            share = wilson(_hits(places, cut), len(places))
            assert share is not None  # noqa: S101 - there are requests
            figures |= {
                f"recall@{cut}/{way}": share.value,
                f"recall@{cut}_low/{way}": share.low,
                f"recall@{cut}_high/{way}": share.high,
            }
        figures[f"mrr/{way}"] = sum(1 / place for place in places if place) / len(places)
    pairs = [(_within(one, 5), _within(other, 5)) for one, other in zip(*(found[way] for way in WAYS), strict=True)]
    gain = paired_difference(
        pairs.count((True, True)), pairs.count((False, True)), pairs.count((True, False)), pairs.count((False, False))
    )
    assert gain is not None  # noqa: S101
    return figures | {"gain@5": gain.value, "gain@5_low": gain.low, "gain@5_high": gain.high}


def _within(place: int | None, cut: int) -> bool:
    return place is not None and place <= cut


def _hits(places: Ranks, cut: int) -> int:
    return sum(_within(place, cut) for place in places)


def main(
    mirror: Annotated[Path | None, typer.Option(help="Local clones as OWNER/NAME, instead of the network.")] = None,
    cache: Annotated[Path, typer.Option(help="Where repositories are kept.")] = Path(".demo/repositories"),
    out: Annotated[Path, typer.Option(help="Folder for skills.json.")] = Path("bench/results"),
    page: Annotated[Path | None, typer.Option(help="Write the results as a section of this page too.")] = None,
) -> None:
    """Search public skills for requests that were labelled by hand."""
    asked = requests()
    with tempfile.TemporaryDirectory() as name:
        whole, heads = Path(name) / "whole", Path(name) / "heads"
        whole.mkdir()
        heads.mkdir()
        names = write_skills(whole, Repositories(cache, mirror, tell=STDERR.print))
        if wrong := unknown(asked, names):
            raise ConfigError(f"No skill is called {min(wrong)!r}.", remedy="The labels and the commits do not fit.")
        without_bodies(whole, heads)
        answers = dict(zip(WAYS, (searched(whole, asked), searched(heads, asked)), strict=True))
    found = {way: [rank(*each) for each in zip(answers[way], asked, strict=True)] for way in WAYS}
    missed: dict[str, list[dict[str, Any]]] = {
        way: [
            {"request": request.text, "skills": list(request.skills), "rank": place}
            for request, place in zip(asked, found[way], strict=True)
            if not _within(place, 5)
        ]
        for way in WAYS
    }
    path = results.write(
        "skills",
        command="make bench-skills",
        seed=0,
        figures=figures_of(found)
        | {f"nothing/{way}": answers[way].count([]) for way in WAYS}
        | {"requests": len(asked), "skills": len(names)},
        tables={
            "sources": [{"origin": each.origin, "licence": each.licence} for each in FOLDERS],
            "missed": missed,
        },
        folder=out,
    )
    STDERR.print(path)
    if page is not None:
        write_page(page, out)


if __name__ == "__main__":
    typer.run(main)
