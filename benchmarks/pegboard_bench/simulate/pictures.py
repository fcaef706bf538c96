"""Figures of the simulation: what is spent as tasks come, and success by how different servers are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pegboard_bench.pictures import METHODS, begin, label_ends, save

CURVES = ("rag_mcp", "rag_mcp_task_text", "ehrr", "ehrr_no_auction", "hybrid", "hybrid_economics", "saturation")
LINES = ("rag_mcp", "ehrr", "ehrr_no_hierarchy", "hybrid", "hybrid_economics")
LABELS = {"tokens": "tokens of prompts", "cost_usd": "USD of calls"}
SIZE = (5.8, 3.6)
"""Inches of one plot."""


def cumulative(asked: str) -> str:
    return f"simulate-spent-{asked}.svg"


def by_difference(asked: str) -> str:
    return f"simulate-grid-{asked}.svg"


def draw(tables: Mapping[str, Any], folder: Path) -> None:
    """Two figures a set of requests; raises ConfigError where matplotlib is not installed."""
    begin(folder)
    for asked, curves in tables["curves"].items():
        _cumulative(curves, folder / cumulative(asked))
        _grid(asked, tables["grid"], folder / by_difference(asked))


def _cumulative(curves: Mapping[str, Mapping[str, Sequence[float]]], path: Path) -> None:
    from matplotlib import pyplot

    figure, both = pyplot.subplots(1, 2, figsize=(2 * SIZE[0], SIZE[1]), layout="constrained")
    for axes, (name, label) in zip(both, LABELS.items(), strict=True):
        drawn = [
            axes.plot(curves["task"]["number"], curves[name][policy], **METHODS[policy].line)[0]
            for policy in CURVES
            if policy in curves[name]
        ]
        axes.set(xlabel="tasks", ylabel=label, yscale="log" if name == "tokens" else "linear")
        label_ends(axes, drawn)
    save(figure, path)


def _grid(asked: str, grid: Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]], path: Path) -> None:
    """A plot for each number of copies."""
    from matplotlib import pyplot

    numbers = list(dict.fromkeys(label.split("/")[2] for label in grid))
    shape = (len(numbers) * SIZE[0], SIZE[1])
    figure, each = pyplot.subplots(1, len(numbers), figsize=shape, layout="constrained", sharey=True, squeeze=False)
    for axes, copies in zip(each[0], numbers, strict=True):
        of = {_level(label): found for label, found in grid.items() if label.split("/")[::2] == [asked, copies]}
        drawn = []
        for policy in LINES:
            mean, low, high = zip(*(of[level][policy]["success"] for level in sorted(of)), strict=True)
            (line,) = axes.plot(sorted(of), mean, **METHODS[policy].line)
            drawn.append(line)
            axes.fill_between(sorted(of), low, high, alpha=0.08, color=line.get_color())
        axes.set(xlabel="heterogeneity", ylabel="success")
        axes.set_title(f"{copies.removeprefix('copies')} of each server", fontsize=9)
        if axes is each[0][-1]:
            label_ends(axes, drawn)
    save(figure, path)


def _level(label: str) -> float:
    """Of a cell's label, as `tasks/h0.5/copies1`."""
    return float(label.split("/")[1].removeprefix("h"))
