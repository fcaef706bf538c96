"""Heat maps of the grid: what Pegboard's requests are billed, over all tools each time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pegboard_bench.pictures import GROUND, begin, in_words, save

COLUMN, LINE = 0.62, 0.3
"""Inches of a place in the map."""
DEAREST = 2.0
"""The end of the scale: 1 is white, blue is cheaper than all tools, red is dearer."""
DARK_CELL, ON_DARK, ON_LIGHT = 0.35, "#fefefe", "#111111"
"""Share of the way from white to the end from which a cell's number is white; the two colours of numbers."""


def picture(model: str) -> str:
    return f"cache-{model}.svg"


def draw(tables: Mapping[str, Any], folder: Path) -> None:
    """One map a model; raises ConfigError where matplotlib is not installed."""
    begin(folder)
    for model, places in tables["maps"].items():
        _heat_map(model, places, folder / picture(model))


def _heat_map(model: str, places: Sequence[Sequence[Any]], path: Path) -> None:
    from matplotlib import pyplot

    lines = list(dict.fromkeys((testbed, turns) for testbed, turns, *_ in places))
    columns = sorted({(others, news) for _, _, others, news, _ in places})
    values = {((testbed, turns), (others, news)): value for testbed, turns, others, news, value in places}
    grid = [[values.get((line, column), float("nan")) for column in columns] for line in lines]
    size = (2.2 + COLUMN * len(columns), 1.2 + LINE * len(lines))
    figure, axes = pyplot.subplots(figsize=size, layout="constrained")
    axes.pcolormesh(grid, cmap="RdBu_r", vmin=0, vmax=DEAREST, edgecolors=GROUND, linewidth=1)
    for (line, column), value in values.items():
        place = columns.index(column) + 0.5, lines.index(line) + 0.5
        color = ON_DARK if abs(value - 1) > 2 * DARK_CELL else ON_LIGHT
        axes.text(*place, f"{value:.2f}", ha="center", va="center", fontsize=7, color=color)
    axes.set_xticks([place + 0.5 for place in range(len(columns))], [f"{o}\n{n:g}" for o, n in columns], fontsize=7)
    axes.set_yticks(
        [place + 0.5 for place in range(len(lines))], [f"{in_words(bed)}, {n} turns" for bed, n in lines], fontsize=7
    )
    axes.invert_yaxis()
    axes.set_xlabel("conversations within a lifetime, share of turns with a new intent", fontsize=8)
    axes.set_title(f"{model}: billed over all tools each time, medians", fontsize=9)
    save(figure, path)
