"""Figures of the tools tax as SVG files beside the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pegboard.bench.pictures import HEIGHT, WIDTH, begin, save

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
EMPHASIS = "hybrid"
RANKERS: Mapping[str, Mapping[str, Any]] = {
    "hybrid": {"label": "hybrid, by certainty", "color": "black", "linewidth": 2.2},
    "hybrid_fixed": {"label": "hybrid, a fixed number", "color": "black", "linewidth": 1, "linestyle": ":"},
    "attention": {"label": "attention", "color": "tab:blue", "linewidth": 1},
    "attention_minilm": {"label": "attention, MiniLM as published", "color": "tab:cyan", "linewidth": 1},
    "semantic": {"label": "semantic", "color": "tab:orange", "linewidth": 1},
    "keyword": {"label": "keyword", "color": "tab:green", "linewidth": 1},
    "bm25f": {"label": "BM25F", "color": "tab:purple", "linewidth": 1},
    "bm25": {"label": "bm25s", "color": "tab:pink", "linewidth": 1},
}
"""How the curves of Pegboard's profiles and of plain rankers are drawn."""
PEER: Mapping[str, Any] = {"label": "peers", "color": "0.75", "linewidth": 0.8}


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
        (f"{server} ({bed})", of)
        for bed, about in catalogs.items()
        if bed != "synthetic_47k"
        for server, of in about["servers"].items()
    ]
    figure, axes = pyplot.subplots(figsize=(WIDTH, 0.25 * len(rows) + 1), layout="constrained")
    left = [0.0] * len(rows)
    for part in ("name", "description", "schema", "output"):
        values = [float(of[part]) for _, of in rows]
        axes.barh([name for name, _ in rows], values, left=left, label=part)
        left = [a + b for a, b in zip(left, values, strict=True)]
    axes.invert_yaxis()
    axes.tick_params(axis="y", labelsize=7)
    axes.set(xlabel="tokens in every request (eq. 1)")
    axes.legend(fontsize=7)
    save(figure, path)


def _turns(methods: Mapping[str, Any], bed: str, path: Path) -> None:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(WIDTH, HEIGHT), layout="constrained")
    for method in DRAWN:
        if "resident_by_turn" in methods.get(method, {}):
            values = methods[method]["resident_by_turn"]
            axes.plot(range(1, len(values) + 1), values, label=method, linewidth=_width(method))
    axes.set(xlabel="turn", ylabel="tokens of tool text in the request", yscale="log")
    axes.set_title(f"Sessions of 30 turns and more, {bed}", fontsize=9)
    _legend(figure, [axes], "outside right center")
    save(figure, path)


def _sizes(scaling: Mapping[str, Any], path: Path) -> None:
    from matplotlib import pyplot

    from pegboard.bench.tax.equations import utilization

    curves: dict[str, list[tuple[int, float]]] = {}
    for name, of in scaling.items():
        method, size = name.split("/")
        curves.setdefault(method, []).append((int(size), utilization(of["resident"])))
    figure, axes = pyplot.subplots(figsize=(WIDTH, HEIGHT), layout="constrained")
    for method, points in curves.items():
        sizes, rho = zip(*sorted(points), strict=True)
        axes.plot(sizes, rho, marker="o", markersize=3, label=method, linewidth=_width(method))
    axes.axhline(0.3, color="0.7", linewidth=1, label="the cliff of seed 000 §3.3")
    axes.set(xlabel="tools", ylabel="ρ after one step", xscale="log", ylim=(0, 1))
    axes.set_title("Context left for the task, made catalogs", fontsize=9)
    _legend(figure, [axes], "outside right center")
    save(figure, path)


def _sensitivity(methods: Mapping[str, Any], bed: str, path: Path) -> None:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(WIDTH, HEIGHT), layout="constrained")
    for method in DRAWN:
        if "sensitivity" in methods.get(method, {}):
            tasks, rho = zip(*methods[method]["sensitivity"], strict=True)
            axes.plot(tasks, rho, marker="o", markersize=3, label=method, linewidth=_width(method))
    axes.set(xlabel="C_task at turn 30, tokens", ylabel="ρ at turn 30", xscale="log", ylim=(0, 1))
    axes.set_title(f"What is assumed of the task decides, {bed}", fontsize=9)
    _legend(figure, [axes], "outside right center")
    save(figure, path)


def _frontier(curves: Mapping[str, Any], path: Path) -> None:
    """Pegboard's profiles by name, peers in grey: which is which stands in the tables."""
    from matplotlib import pyplot

    rows = -(-len(curves) // 2)
    figure, grid = pyplot.subplots(rows, 2, figsize=(1.6 * WIDTH, 3 * rows), layout="constrained", squeeze=False)
    for axes, (name, methods) in zip(grid.flat, curves.items(), strict=False):
        for method, (tokens, recall) in sorted(methods.items(), key=lambda curve: curve[0] in RANKERS):
            axes.plot(tokens, recall, **RANKERS.get(method, PEER))
        axes.set(xscale="log", ylim=(0, 1.02), xlim=(100, 20_000))
        axes.set_title(name, fontsize=8)
        axes.tick_params(labelsize=7)
    for axes in list(grid.flat)[len(curves) :]:
        axes.set_axis_off()
    for axes in grid[-1]:
        axes.set_xlabel("mean tokens of definitions", fontsize=8)
    figure.supylabel("mean recall", fontsize=8)
    _legend(figure, grid.flat, "outside lower center", ncols=5)
    save(figure, path)


def _legend(figure: Any, several: Iterable[Any], place: str, **layout: Any) -> None:
    """Each label once, beside the axes: inside, it would cover curves."""
    handles = {
        label: handle for axes in several for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc=place, fontsize=7, **layout)


def _width(method: str) -> float:
    return 2.2 if method.startswith(EMPHASIS) else 1.0
