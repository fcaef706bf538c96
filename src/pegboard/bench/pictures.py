"""Figures of the ranking section as SVG files beside the page, the same bytes for the same results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pegboard.extras import required

RELIABILITY, TOKENS = "reliability.svg", "tokens-for-recall.svg"
WIDTH, HEIGHT = 6.0, 4.2
"""Inches."""
SHOWN = (0.5, 1.0)
"""Recalls on the axis."""


def draw(tables: Mapping[str, Any], folder: Path) -> None:
    """Both figures; raises ConfigError where matplotlib is not installed."""
    begin(folder)
    _reliability(tables["reliability_bins"], folder / RELIABILITY)
    _tokens(tables["curves"], folder / TOKENS)


def begin(folder: Path) -> None:
    """Before the first figure; raises ConfigError where matplotlib is not installed."""
    mpl = required("matplotlib", "bench")
    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "pegboard"
    folder.mkdir(parents=True, exist_ok=True)


def _reliability(bins: Sequence[Sequence[float]], path: Path) -> None:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(HEIGHT, HEIGHT), layout="constrained")
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    axes.plot([said for said, _, _ in bins], [true for _, true, _ in bins], marker="o", markersize=4)
    axes.set(xlabel="probability said", ylabel="share that was relevant", xlim=(0, 1), ylim=(0, 1))
    axes.set_title("The 20 best tools of each query, unseen sets, 15 bins", fontsize=9)
    save(figure, path)


def _tokens(curves: Mapping[str, Mapping[str, Sequence[Sequence[float]]]], path: Path) -> None:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(WIDTH, HEIGHT), layout="constrained")
    for name, of_set in curves.items():
        tokens, recall = of_set["adaptive"]
        (line,) = axes.plot(recall, tokens, label=name, linewidth=1.3)
        tokens, recall = of_set["fixed"]
        axes.plot(recall, tokens, color=line.get_color(), linestyle=":", linewidth=1.3)
    axes.set(xlabel="mean recall", ylabel="mean tokens of definitions", yscale="log", xlim=SHOWN)
    axes.set_title("By certainty (solid) and by a fixed number of tools (dotted)", fontsize=9)
    axes.legend(fontsize=7)
    save(figure, path)


def save(figure: Any, path: Path) -> None:
    """Write and forget a figure, the same bytes each time."""
    from matplotlib import pyplot

    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
