"""The section of `board.json`: boards that change, their memory, their first decision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard_bench.results import measured

HEAD = """## Boards that change

Written by `{command}`. {measured}.

One tool is added, changed or removed, and the next turn is routed and its tools given to a model. Times are of the
processor, in all threads of a process with one thread for its arithmetic, medians of twelve changes; the tools are
{tools}. The encoder is replaced by one that takes no time: its own comes with each text that is new, 6 to 25 ms. Memory
is that of the whole process: the interpreter, its packages, the definitions and all indexes, without the encoder.

| tools | {sizes} |
|---|{lines}|
"""
ROWS = (
    ("add_ms", "a tool more, and the next turn, ms"),
    ("change_ms", "a tool that changed, ms"),
    ("remove_ms", "a tool less, ms"),
    ("route_ms", "a turn without a change, ms"),
    ("first_ms", "the first turn of a board that is new, ms"),
    ("search_ms", "a tool more, and the next search, ms"),
    ("fastmcp_add_ms", "a tool more, and the next search of FastMCP, ms"),
    ("fastmcp_search_ms", "a search of FastMCP without a change, ms"),
    ("rss_mb", "memory after the first turn, MB"),
    ("peak_mb", "its highest during all changes, MB"),
    ("words_cpu_s", "the first turn while nothing is embedded, by words, s"),
)
TAIL = """
In a new process, over {small} tools whose vectors are stored: `import pegboard` takes {import_cpu_ms:.0f} ms of the
processor ({import_ms:.0f} ms by the clock), and from there to the first decision, with the real encoder,
{decision_cpu_s:.2f} s ({decision_s:.2f} s by the clock); the best of five processes.
"""


def section(results: Mapping[str, Any]) -> str:
    figures, tables = results["figures"], results["tables"]
    sizes = sorted(int(name.partition("/")[2]) for name in figures if name.startswith("add_ms/"))
    text = HEAD.format(
        command=results["command"],
        measured=measured(results),
        tools="those of public catalogs" if tables["tools"] == "real" else "made",
        sizes=" | ".join(f"{size:,}" for size in sizes),
        lines="|".join("---" for _ in sizes),
    )
    for name, said in ROWS:
        if all(f"{name}/{size}" in figures for size in sizes):
            text += f"| {said} | {' | '.join(_number(figures[f'{name}/{size}']) for size in sizes)} |\n"
    return text + TAIL.format(small=tables["small"], **{name: figures[name] for name in figures if "/" not in name})


def _number(value: float) -> str:
    """
    >>> _number(1234.5), _number(23.4), _number(0.987)
    ('1,234', '23', '0.99')
    """
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
