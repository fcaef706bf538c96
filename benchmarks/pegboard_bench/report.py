"""The figures as tables for people."""

from __future__ import annotations

from rich.table import Table

from pegboard.evaluation.ranking_metrics import Interval
from pegboard_bench.latency import Latency
from pegboard_bench.quality import OURS, PAIRED, Quality


def quality_table(quality: Quality) -> Table:
    names = list(dict.fromkeys(metric for metric, _ in quality.means))
    methods = list(dict.fromkeys(method for _, method in quality.means))
    table = Table(
        title=f"{quality.name} ({quality.queries} queries)",
        caption=f"{PAIRED}, {OURS} over {quality.rival}: {_signed(quality.gain)}",
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("method")
    for name in names:
        table.add_column(name, justify="right")
    for method in methods:
        table.add_row(method, *(_with_interval(quality.means[name, method]) for name in names))
    return table


def latency_table(latency: Latency, catalog: str) -> Table:
    table = Table(title=f"latency, {latency.size} tools ({catalog}), one thread", title_justify="left")
    table.add_column("figure")
    table.add_column("value", justify="right")
    for name, value in latency.figures().items():
        table.add_row(name, f"{value:,.3f}")
    return table


def _with_interval(each: Interval) -> str:
    return f"{each.mean:.3f} [{each.low:.3f}, {each.high:.3f}]"


def _signed(each: Interval) -> str:
    return f"{each.mean:+.3f} [{each.low:+.3f}, {each.high:+.3f}]"
