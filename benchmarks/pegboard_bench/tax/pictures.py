"""Figures of the tools tax as SVG files beside the page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pegboard_bench.pictures import (
    BLUE,
    FAINT,
    GREEN,
    HEIGHT,
    METHODS,
    ORANGE,
    PINK,
    WIDTH,
    begin,
    in_words,
    label_ends,
    save,
)

SERVERS, TURNS, SIZES, SENSITIVITY = "tax-servers.svg", "tax-turns.svg", "tax-sizes.svg", "tax-sensitivity.svg"
FRONTIER = "tax-frontier.svg"
DRAWN = (
    "full",
    "pruned",
    "simple",
    "cli",
    "attention",
    "ehrr",
    "dynamic",
    "hybrid",
    "hybrid_way_back",
    "hybrid_static",
)
BED = "real120"
FALLBACK = "synthetic"
RANKERS = ("hybrid", "hybrid_fixed", "attention", "attention_minilm", "semantic", "keyword", "bm25f", "bm25")
"""Pegboard's profiles and plain rankers, which the frontier names; peers are grey."""
CLIFF, CLIFF_LABEL = 0.3, "the cliff of Tool Attention §3.3"
PARTS = {"name": GREEN, "description": BLUE, "schema": ORANGE, "output": PINK}
PEER: Mapping[str, Any] = {"label": "peers", "color": FAINT, "linewidth": 0.5, "alpha": 0.7}


def draw(tables: Mapping[str, Any], folder: Path) -> None:
    """All figures; raises ConfigError where matplotlib is not installed."""
    begin(folder)
    bed = BED if BED in tables["methods"] else FALLBACK
    _servers(tables["catalogs"], folder / SERVERS)
    _turns(tables["methods"][bed], bed, folder / TURNS)
    _sizes(tables["scaling"], folder / SIZES)
    _sensitivity(tables["methods"][bed], bed, folder / SENSITIVITY)
    if tables["curves"]:
        _frontier(tables["curves"], folder / FRONTIER)


def _servers(catalogs: Mapping[str, Any], path: Path) -> None:
    from matplotlib import pyplot

    rows = [
        (f"{server} ({in_words(bed)})", of)
        for bed, about in catalogs.items()
        if bed != "synthetic_47k"
        for server, of in about["servers"].items()
    ]
    figure, axes = pyplot.subplots(figsize=(1.2 * WIDTH, 0.25 * len(rows) + 1), layout="constrained")
    left = [0.0] * len(rows)
    for part, color in PARTS.items():
        values = [float(of[part]) for _, of in rows]
        axes.barh([name for name, _ in rows], values, left=left, label=part, color=color)
        left = [a + b for a, b in zip(left, values, strict=True)]
    axes.invert_yaxis()
    axes.tick_params(axis="y", labelsize=7)
    axes.set(xlabel="tokens in every request (eq. 1)")
    axes.legend(fontsize=7)
    save(figure, path)


def _turns(methods: Mapping[str, Any], bed: str, path: Path) -> None:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(1.4 * WIDTH, HEIGHT), layout="constrained")
    lines = []
    for method in DRAWN:
        if "resident_by_turn" in methods.get(method, {}):
            values = methods[method]["resident_by_turn"]
            lines += axes.plot(range(1, len(values) + 1), values, **METHODS[method].line)
    axes.set(xlabel="turn", ylabel="tokens of tool text in the request", yscale="log")
    axes.set_title(f"Sessions of 30 turns and more, {in_words(bed)}", fontsize=9)
    label_ends(axes, lines)
    save(figure, path)


def _sizes(scaling: Mapping[str, Any], path: Path) -> None:
    from matplotlib import pyplot

    from pegboard_bench.tax.equations import utilization

    curves: dict[str, list[tuple[int, float]]] = {}
    for name, of in scaling.items():
        method, size = name.split("/")
        curves.setdefault(method, []).append((int(size), utilization(of["resident"])))
    figure, axes = pyplot.subplots(figsize=(1.4 * WIDTH, HEIGHT), layout="constrained")
    lines = []
    for method, points in curves.items():
        sizes, rho = zip(*sorted(points), strict=True)
        lines += axes.plot(sizes, rho, marker="o", markersize=3, **METHODS[method].line)
    every = [size for points in curves.values() for size, _ in points]
    lines += axes.plot([min(every), max(every)], [CLIFF] * 2, color=FAINT, linewidth=1, label=CLIFF_LABEL)
    axes.set(xlabel="tools", ylabel="ρ after one step", xscale="log", ylim=(0, 1))
    axes.set_title("Context left for the task, made catalogs", fontsize=9)
    label_ends(axes, lines)
    save(figure, path)


def _sensitivity(methods: Mapping[str, Any], bed: str, path: Path) -> None:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(1.4 * WIDTH, HEIGHT), layout="constrained")
    lines = []
    for method in DRAWN:
        if "sensitivity" in methods.get(method, {}):
            tasks, rho = zip(*methods[method]["sensitivity"], strict=True)
            lines += axes.plot(tasks, rho, marker="o", markersize=3, **METHODS[method].line)
    axes.set(xlabel="C_task at turn 30, tokens", ylabel="ρ at turn 30", xscale="log", ylim=(0, 1))
    axes.set_title(f"What is assumed of the task decides, {in_words(bed)}", fontsize=9)
    label_ends(axes, lines)
    save(figure, path)


def _frontier(curves: Mapping[str, Any], path: Path) -> None:
    """Pegboard's profiles and plain rankers by name, peers in grey: which is which stands in the tables."""
    from matplotlib import pyplot

    rows = -(-len(curves) // 2)
    figure, grid = pyplot.subplots(rows, 2, figsize=(2 * WIDTH, 3 * rows), layout="constrained", squeeze=False)
    for axes, (name, methods) in zip(grid.flat, curves.items(), strict=False):
        axes.set(xscale="log", ylim=(0, 1.02), xlim=(100, 20_000))
        axes.set_title(in_words(name), fontsize=8)
        axes.tick_params(labelsize=7)
        for method, (tokens, recall) in methods.items():
            if method not in RANKERS:
                axes.plot(tokens, recall, **PEER)
        lines = [axes.plot(*methods[method], **METHODS[method].line)[0] for method in RANKERS if method in methods]
        label_ends(axes, lines)
    for axes in list(grid.flat)[len(curves) :]:
        axes.set_axis_off()
    for axes in grid[-1]:
        axes.set_xlabel("mean tokens of definitions", fontsize=8)
    figure.supylabel("mean recall (grey: peers)", fontsize=8)
    save(figure, path)
