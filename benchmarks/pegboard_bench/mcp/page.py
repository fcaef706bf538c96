"""The section of `mcp.json`: what a hop through a gateway costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard_bench.results import measured

WORKS: Mapping[str, str] = {
    "hop": "`tools/call`, one after the other",
    "hop_16": "`tools/call`, 16 at a time",
    "list": "`tools/list`, 30 tools",
}
CONTENDERS: Mapping[str, str] = {
    "direct": "direct",
    "bare_sdk": "bare SDK proxy",
    "pegboard": "Pegboard",
    "fastmcp": "FastMCP's proxy",
}
INTRODUCTION = """## A hop through the MCP gateway

Written by `{command}`. {measured}, mcp {mcp}{fastmcp}.

An echo server on the raw SDK is asked by a client of the raw SDK: directly, through the barest proxy that can be
written on the SDK (`bench/mcp/bare_proxy.py`), through Pegboard (`pegboard mcp` on stdio, `pegboard serve` on HTTP,
both listing everything), and through FastMCP's proxy. Behind each proxy the server runs on stdio. All are connected at
once and take turns in {rounds} rounds, in an order that rotates; times are medians over the rounds in milliseconds, a
request each, with the quartiles in brackets, and a ratio is the median of the ratios within a round.
"""
READING = """Pegboard answers `tools/list` from its own board; both proxies ask the server again.
"""


def section(results: Mapping[str, Any]) -> str:
    tables = results["tables"]
    head = INTRODUCTION.format(
        command=results["command"],
        measured=measured(results),
        mcp=results["versions"]["mcp"],
        fastmcp=f", fastmcp {tables['fastmcp']}" if "fastmcp" in tables else "",
        rounds=tables["rounds"],
    )
    return "\n".join([head, *(_table(work, title, results) for work, title in WORKS.items()), READING])


def _table(work: str, title: str, results: Mapping[str, Any]) -> str:
    tables, figures = results["tables"], results["figures"]
    cells = [name.removeprefix(f"{work}/") for name in tables["ms"] if name.startswith(f"{work}/")]
    shown = [name for name in CONTENDERS if any(name in tables["ms"][f"{work}/{cell}"] for cell in cells)]
    ratios = {f"{work}_over_direct": "Pegboard over direct", f"{work}_over_bare_sdk": "over the bare proxy"}
    if "fastmcp" in shown:
        ratios[f"{work}_over_fastmcp"] = "over FastMCP's"
    rows = []
    for cell in cells:
        times = tables["ms"][f"{work}/{cell}"]
        found = [f"{figures[f'{name}/{cell}']:.2f}" for name in ratios]
        rows.append(f"| {_named(cell, tables)} | {' | '.join([*(_ms(times[name]) for name in shown), *found])} |")
    return "\n".join(
        [
            f"### {title}\n",
            f"| | {' | '.join([*(CONTENDERS[name] for name in shown), *ratios.values()])} |",
            f"|---|{'---|' * (len(shown) + len(ratios))}",
            *rows,
            "",
        ]
    )


def _ms(of: Mapping[str, float]) -> str:
    return f"{of['median']:.2f} [{of['q25']:.2f}, {of['q75']:.2f}]"


def _named(cell: str, tables: Mapping[str, Any]) -> str:
    """The cell, and who spoke another protocol than the others in it."""
    spoken = tables["protocols"][cell]
    odd = [f"{CONTENDERS[name]}: {version}" for name, version in spoken.items() if version != spoken["direct"]]
    return f"{cell.replace('/', ', ')} ({spoken['direct']}{'; ' + ', '.join(odd) if odd else ''})"
