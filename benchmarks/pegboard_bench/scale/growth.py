"""How the times of searches and of changes grow with the board: slopes of lines in a log-log chart, and the chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from pegboard_bench.pictures import BLUE, GREEN, HEIGHT, ORANGE, WIDTH, begin, label_ends, save

PICTURE = "scale-growth.svg"
LINES: Mapping[str, tuple[str, str]] = {
    "search": ("a search", BLUE),
    "add_alone": ("one tool more", GREEN),
    "remove_alone": ("one tool less", ORANGE),
}
"""Times by their names in the figures: in words, and the colour."""


def slope(figures: Mapping[str, float], name: str, sizes: Sequence[int]) -> float:
    """The exponent b of the median time ~ size^b, by least squares: 0 is constant, 1 linear.

    >>> round(slope({"p50_ms/search/10": 2.0, "p50_ms/search/1000": 20.0}, "search", [10, 1000]), 3)
    0.5
    """
    times = [figures[f"p50_ms/{name}/{size}"] for size in sizes]
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def draw(figures: Mapping[str, float], sizes: Sequence[int], folder: Path) -> None:
    """The chart; raises ConfigError where matplotlib is not installed."""
    begin(folder)
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(WIDTH, HEIGHT), layout="constrained")
    lines = []
    for name, (words, color) in LINES.items():
        times = [figures[f"p50_ms/{name}/{size}"] for size in sizes]
        lines += axes.plot(sizes, times, marker="o", markersize=3, label=words, color=color)
    axes.set(xlabel="tools", ylabel="median, ms", xscale="log", yscale="log")
    label_ends(axes, lines)
    save(figure, folder / PICTURE)
