"""The section of `scale.json`: boards from a thousand to a million tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pegboard_bench.results import measured
from pegboard_bench.scale import growth

INTRODUCTION = """## A million tools

Written by `{command}`. {measured}; one thread, load of the machine {load:.1f}. `index = "compressed"`: {real:,} vectors
of real tools, the others **synthesised** from them, each moved off its model at random until their cosine is 0.78.
{queries} real requests, k = 10. Recall is the share of the exact ten that was found; up to {exact:,} tools, or where a
filter leaves so few, the search is exact. Memory is what the index takes besides the file with the whole vectors. A
change counts until a search shows it. Beside {changes:,} changes a second, {searches} searches a second ran for
{seconds:.0f} s.

"""
COLUMNS = (
    "tools",
    "search: p50 / p95 ms",
    "recall@10",
    "every 20th server: p50 ms, recall@10",
    "one tool more: p50 / p95 ms",
    "one less",
    "while changing: p50 / p95 ms",
    "build, s",
    "memory, MB",
    "file, MB",
)


def section(results: Mapping[str, Any]) -> str:
    tables, figures = results["tables"], results["figures"]
    head = INTRODUCTION.format(
        command=results["command"],
        measured=measured(results),
        load=tables["load"],
        real=tables["real"],
        queries=tables["queries"],
        exact=tables["exact_up_to"],
        changes=tables["changes"],
        searches=tables["searches"],
        seconds=tables["seconds"],
    )
    rows = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    rows += [_row(size, figures) for size in tables["sizes"]]
    return "\n".join([head, *rows, "", _behind(tables, figures), *_growth(tables["sizes"], figures)])


def _row(size: int, figures: Mapping[str, float]) -> str:
    def both(name: str) -> str:
        return f"{figures[f'p50_ms/{name}/{size}']:.2f} / {figures[f'p95_ms/{name}/{size}']:.2f}"

    few = f"{figures[f'p50_ms/few_servers/{size}']:.2f}, {figures[f'recall@10_few_servers/{size}']:.4f}"
    cells = [
        f"{size:,}",
        both("search"),
        f"{figures[f'recall@10/{size}']:.4f}",
        few,
        both("add"),
        both("remove"),
        both("search_while_changing"),
        f"{figures[f'build_s/{size}']:.1f}",
        f"{figures[f'memory_mb/{size}']:.0f}",
        f"{figures[f'file_mb/{size}']:.0f}",
    ]
    return f"| {' | '.join(cells)} |"


def _behind(tables: Mapping[str, Any], figures: Mapping[str, float]) -> str:
    late = {size: figures[f"late_s/{size}"] for size in tables["sizes"] if figures[f"late_s/{size}"] > 1}
    if not late:
        return "The changes kept to their schedule at every size.\n"
    said = ", ".join(f"{seconds:.0f} s at {size:,} tools" for size, seconds in late.items())
    return f"Behind the schedule of {tables['seconds']:.0f} s at the end: {said}.\n"


def _growth(sizes: Sequence[int], figures: Mapping[str, float]) -> list[str]:
    """Nothing for results of one size, or from before changes were timed alone."""
    if len(sizes) < 2 or any(f"p50_ms/{name}/{sizes[0]}" not in figures for name in growth.LINES):
        return []
    said = ", ".join(f"{words} {growth.slope(figures, name, sizes):.2f}" for name, (words, _) in growth.LINES.items())
    return [
        f"Exponents of the growth with the number of tools (0: constant, 1: linear), of a change without the search "
        f"that shows it: {said}.\n",
        f"![Median times by the number of tools, both axes logarithmic]({growth.PICTURE})\n",
    ]
