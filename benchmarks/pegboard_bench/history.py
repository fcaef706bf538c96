"""How the headlines have changed: `python -m pegboard_bench.history` reads them from the history of the repository.

What it finds goes into `bench/history.json`, beside what is there already: a clone may have less history.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from pegboard_bench.headlines import HEADLINES, Headline
from pegboard_bench.pictures import BLUE, FAINT, INK, begin, save

KEPT = Path("bench/history.json")
PICTURE = "benchmarks-history.svg"
COLUMNS = 2
SIZE = (9.0, 8.5)
"""Inches."""
Point = tuple[str, str, float]
"""When it was measured, the commit, and the value."""
History = dict[str, list[Point]]
"""The points of each headline, by file and figure, oldest first."""


def name_of(headline: Headline) -> str:
    return f"{headline.result}/{headline.figure}"


def gathered(root: Path, before: Mapping[str, Sequence[Sequence[Any]]]) -> History:
    """The values of each headline in every version of its file, and those that were known ``before``."""
    history: History = {}
    for headline in HEADLINES:
        found = {(at, commit): value for at, commit, value in before.get(name_of(headline), ())}
        for result in _versions(root, f"bench/results/{headline.result}.json"):
            if headline.figure in result["figures"]:
                key = (result["date"], result["commit"].removesuffix("-dirty")[:12])
                found[key] = result["figures"][headline.figure]
        history[name_of(headline)] = [(at, commit, value) for (at, commit), value in sorted(found.items())]
    return history


def _versions(root: Path, path: str) -> list[dict[str, Any]]:
    commits = _git(root, "log", "--reverse", "--format=%H", "--", path).split()
    versions = [json.loads(_git(root, "show", f"{commit}:{path}")) for commit in commits]
    now = root / path
    return [*versions, *([json.loads(now.read_text("utf-8"))] if now.exists() else [])]


def _git(root: Path, *arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout


def draw(history: Mapping[str, Sequence[Sequence[Any]]], folder: Path) -> None:
    """A chart for each headline, with its last value. Raises ConfigError where matplotlib is not installed."""
    begin(folder)
    from matplotlib import pyplot

    figure, grid = pyplot.subplots(-(-len(HEADLINES) // COLUMNS), COLUMNS, figsize=SIZE, layout="constrained")
    days = [date.fromisoformat(at[:10]) for points in history.values() for at, _, _ in points]
    for headline, axes in zip(HEADLINES, grid.flat, strict=True):
        points = history[name_of(headline)]
        at, values = [datetime.fromisoformat(at) for at, _, _ in points], [value for _, _, value in points]
        axes.plot(at, values, color=BLUE, marker="o", markersize=4, linewidth=1.3)
        axes.set_title(headline.title, fontsize=9, loc="left")
        axes.annotate(
            format(values[-1], headline.form),
            (at[-1], values[-1]),
            xytext=(7, 0),
            textcoords="offset points",
            fontsize=9,
            va="center",
            color=INK,
        )
        axes.set_xlim(min(days), max(days) + timedelta(days=1))
        axes.set_ylim(0, 1.2 * max(values) or 1)
        shown = sorted({min(days), max(days)})
        axes.set_xticks(shown, [day.isoformat() for day in shown])
        axes.tick_params(labelsize=7, color=FAINT)
    save(figure, folder / PICTURE)


def main(
    root: Annotated[Path, typer.Option(help="The repository.")] = Path(),
    pictures: Annotated[Path, typer.Option(help="Folder for the chart.")] = Path("docs"),
) -> None:
    """Write the values of the headlines, version by version, and draw them."""
    path = root / KEPT
    before = json.loads(path.read_text("utf-8")) if path.exists() else {}
    history = gathered(root, before)
    path.write_text(json.dumps(history, indent=1) + "\n", "utf-8")
    draw(history, root / pictures)
    typer.echo(f"Written to {path} and {root / pictures / PICTURE}")


if __name__ == "__main__":
    typer.run(main)
