"""Charts as SVG files beside the page: the same bytes for the same results, in the reader's light or dark scheme.

A method has one colour and one kind of line in every chart (`METHODS`), and its name stands where its line ends.
Colours are those of Okabe and Ito, which people with any kind of colour vision tell apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pegboard.extras import required

RELIABILITY, TOKENS = "reliability.svg", "tokens-for-recall.svg"
WIDTH, HEIGHT = 6.0, 4.2
"""Inches."""
SHOWN = (0.5, 1.0)
"""Recalls on the axis."""
INK, FAINT, GROUND = "#1b1f24", "#8c959f", "#ffffff"
DARK = {INK: "#e6edf3", FAINT: "#6e7681", GROUND: "#0d1117"}
"""What these colours become in a dark scheme; those of lines stay."""
BLUE, SKY, GREEN, ORANGE, RED, PINK = "#0072b2", "#56b4e9", "#009e73", "#e69f00", "#d55e00", "#cc79a7"
DASHED, DASH_DOT, DOTTED, LONG = (0, (4, 2)), (0, (4, 2, 1, 2)), (0, (1, 1.5)), (0, (8, 2))
LABEL_POINTS = 9.0
"""Height of a label at the end of a line."""


@dataclass(frozen=True, slots=True)
class Method:
    """How a chart shows a method: its name in words, its colour, its kind of line, and whether it is a thick one."""

    words: str
    color: str
    dash: Any = "solid"
    strong: bool = False

    @property
    def line(self) -> dict[str, Any]:
        """Options of `axes.plot`."""
        width = 2.2 if self.strong else 1.3
        return {"label": self.words, "color": self.color, "linestyle": self.dash, "linewidth": width}


METHODS: Mapping[str, Method] = {
    "hybrid": Method("Pegboard", BLUE, strong=True),
    "hybrid_way_back": Method("Pegboard, LLM gateway with tool search", BLUE, DASHED, strong=True),
    "hybrid_static": Method("Pegboard, MCP gateway (static)", BLUE, DASH_DOT, strong=True),
    "hybrid_dynamic": Method("Pegboard, MCP gateway (dynamic)", BLUE, DOTTED, strong=True),
    "hybrid_economics": Method("Pegboard with economics", BLUE, LONG, strong=True),
    "hybrid_fixed": Method("Pegboard, a fixed number", BLUE, DOTTED),
    "full": Method("all tools", RED),
    "saturation": Method("all tools in the prompt", RED, DASHED),
    "pruned": Method("thirty chosen tools", ORANGE),
    "simple": Method("simple retrieval", ORANGE, DASHED),
    "cli": Method("command line", ORANGE, DASH_DOT),
    "attention": Method("Tool Attention", GREEN),
    "attention_minilm": Method("Tool Attention, MiniLM as published", GREEN, DASHED),
    "ehrr": Method("EHRR", PINK),
    "ehrr_no_auction": Method("EHRR without auction", PINK, DASHED),
    "ehrr_no_hierarchy": Method("EHRR without hierarchy", PINK, DASH_DOT),
    "rag_mcp": Method("RAG-MCP", SKY),
    "rag_mcp_task_text": Method("RAG-MCP, the task's text", SKY, DASHED),
    "semantic": Method("semantic filter", SKY, DASH_DOT),
    "semantic_threshold": Method("semantic filter with a threshold", SKY, DOTTED),
    "dynamic": Method("lazy loading, dynamic", INK),
    "static": Method("lazy loading, static", INK, DASHED),
    "keyword": Method("keyword", ORANGE, DOTTED),
    "bm25f": Method("BM25F", PINK, DOTTED),
    "bm25": Method("bm25s", PINK, LONG),
}
SETS = {
    "livemcp_tasks": "LiveMCPBench, tasks",
    "livemcp_steps": "LiveMCPBench, steps",
    "livemcp_routes": "LiveMCPBench, routes",
    "mcpverse": "MCPVerse",
    "mcpproxy_golden": "MCPProxy's golden set",
    "graphtoolcall": "graph-tool-call's set",
    "metatool": "MetaTool",
    "real120": "120 real tools",
    "recorded": "recorded tools",
    "synthetic": "the paper's servers",
    "synthetic_47k": "the paper's servers, 47.3k tokens",
}
"""Names of sets in words."""
SET_COLORS = (BLUE, GREEN, RED, ORANGE, PINK, SKY, INK, FAINT)
"""For charts whose lines are sets, in the order of the sets."""


def in_words(set_name: str) -> str:
    return SETS.get(set_name, set_name)


def draw(tables: Mapping[str, Any], folder: Path) -> None:
    """Both figures; raises ConfigError where matplotlib is not installed."""
    begin(folder)
    _reliability(tables["reliability_bins"], folder / RELIABILITY)
    _tokens(tables["curves"], folder / TOKENS)


def begin(folder: Path) -> None:
    """Before the first figure; raises ConfigError where matplotlib is not installed."""
    mpl = required("matplotlib", "bench")
    mpl.use("svg")
    mpl.rcParams.update(
        {
            "svg.hashsalt": "pegboard",
            "figure.facecolor": GROUND,
            "axes.facecolor": GROUND,
            "text.color": INK,
            "axes.labelcolor": INK,
            "axes.titlecolor": INK,
            "xtick.labelcolor": INK,
            "ytick.labelcolor": INK,
            "xtick.color": FAINT,
            "ytick.color": FAINT,
            "axes.edgecolor": FAINT,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "legend.frameon": False,
        }
    )
    folder.mkdir(parents=True, exist_ok=True)


def label_ends(axes: Any, lines: Sequence[Any]) -> None:
    """The name of each line right of its last point, none above another. Scales and limits are set before."""
    axes.autoscale_view()
    height = axes.figure.get_size_inches()[1] * 72 * axes.get_subplotspec().get_position(axes.figure).height
    gap = LABEL_POINTS / height
    ends = sorted(((*_end(axes, line), line) for line in lines), key=lambda end: end[1])
    places = _apart([y for _, y, _ in ends], gap)
    for (x, y, line), place in zip(ends, places, strict=True):
        axes.annotate(
            line.get_label(),
            xy=(x, y),
            xytext=(1.04, place),
            xycoords="axes fraction",
            textcoords="axes fraction",
            fontsize=7,
            va="center",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": line.get_color(),
                "linewidth": 0.6,
                "relpos": (0, 0.5),
                "shrinkA": 1,
                "shrinkB": 0,
            },
        )


def _end(axes: Any, line: Any) -> tuple[float, float]:
    """The last point of a line within the axes, in fractions of them."""
    to_axes = axes.transData + axes.transAxes.inverted()
    points = to_axes.transform(line.get_xydata())
    within = points[(points[:, 0] <= 1) & (points[:, 1] >= 0)] if len(points) else points
    x, y = within[-1] if len(within) else points[-1]
    return float(min(x, 1.0)), float(min(max(y, 0.0), 1.0))


def _apart(wanted: Sequence[float], gap: float) -> list[float]:
    """Places at least ``gap`` apart, near those that are wanted (ascending), and below 1 where there is room.

    >>> _apart([0.5, 0.5, 1.0], 0.25)
    [0.5, 0.75, 1.0]
    """
    places: list[float] = []
    for each in wanted:
        places.append(max(each, places[-1] + gap) if places else each)
    highest = 1.0
    for number in reversed(range(len(places))):
        places[number] = min(places[number], highest)
        highest = places[number] - gap
    return places


def _reliability(bins: Sequence[Sequence[float]], path: Path) -> None:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(HEIGHT, HEIGHT), layout="constrained")
    axes.plot([0, 1], [0, 1], color=FAINT, linewidth=1)
    said, true = [said for said, _, _ in bins], [true for _, true, _ in bins]
    axes.plot(said, true, marker="o", markersize=4, color=BLUE)
    axes.set(xlabel="predicted probability", ylabel="share that was relevant", xlim=(0, 1), ylim=(0, 1))
    axes.set_title("The 20 best tools of each query, unseen sets, 15 bins", fontsize=9)
    save(figure, path)


def _tokens(curves: Mapping[str, Mapping[str, Sequence[Sequence[float]]]], path: Path) -> None:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(1.3 * WIDTH, HEIGHT), layout="constrained")
    lines = []
    for (name, of_set), color in zip(curves.items(), SET_COLORS, strict=False):
        tokens, recall = of_set["adaptive"]
        lines += axes.plot(recall, tokens, label=in_words(name), linewidth=1.3, color=color)
        tokens, recall = of_set["fixed"]
        axes.plot(recall, tokens, linestyle=DOTTED, linewidth=1.3, color=color)
    axes.set(xlabel="mean recall", ylabel="mean tokens of definitions", yscale="log", xlim=SHOWN)
    axes.set_title("By certainty (solid) and by a fixed number of tools (dotted)", fontsize=9)
    label_ends(axes, lines)
    save(figure, path)


def save(figure: Any, path: Path) -> None:
    """Write and forget a figure, the same bytes each time."""
    from matplotlib import pyplot

    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    rules = "".join(
        f'[style*="{what}: {light}"] {{ {what}: {dark} !important }}'
        for light, dark in DARK.items()
        for what in ("fill", "stroke")
    )
    style = f"<style>@media (prefers-color-scheme: dark) {{ {rules} }}</style>"
    path.write_text(path.read_text("utf-8").replace("</svg>", f" {style}\n</svg>"), "utf-8")
