"""The section of `tenants.json`: many tenants on one store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard_bench.results import measured

INTRODUCTION = """## Thousands of tenants

Written by `{command}`. {measured}; load of the machine {load:.1f}. {tenants:,} [tenants](tenants.md) with {tools} tools
each: {shared} on public servers, drawn for each from {servers} real ones with {public:,} tools, and the others on
three servers of its own, which every tenant calls alike. Private tools are **synthesised** from real ones, each with a
text of its own and a vector off its model's. Requests are real, and go through `TenantBoards.search`.

"""
PHASES = {
    "quiet": "nothing else",
    "importing": "one tenant imports {imported:,} tools",
    "building": "… and searches them for the first time",
    "flooded": "one tenant has {flood} requests under way",
}


def section(results: Mapping[str, Any]) -> str:
    tables, figures = results["tables"], results["figures"]
    head = INTRODUCTION.format(
        command=results["command"],
        measured=measured(results),
        load=tables["load"],
        tenants=tables["tenants"],
        tools=tables["tools"],
        shared=tables["shared"],
        servers=tables["public_servers"],
        public=tables["public"],
    )
    others = _others(tables["neighbours"], figures) if "neighbours" in tables else []
    return "\n".join([head, *_memory(tables, figures), "", *_searches(tables, figures), "", *others, ""])


def _memory(tables: Mapping[str, Any], figures: Mapping[str, float]) -> list[str]:
    apart = figures["memory_mb/apart_each"] * tables["tenants"]
    rows = [
        (f"the {figures['distinct']:,.0f} distinct tools", figures["memory_mb/distinct"]),
        (f"with the views of all tenants, {figures['listed']:,.0f} tools", figures["memory_mb/with_views"]),
        (f"with the {figures['hot_boards']:.0f} boards that are ready", figures["memory_mb/with_boards"]),
        (f"a board of its own for each, from {figures['memory_mb/apart_each']:.1f} MB each", apart),
    ]
    lines = [f"| {what} | {megabytes:,.0f} | {megabytes / rows[0][1]:.2f} |" for what, megabytes in rows]
    return ["| memory of | MB | times the distinct tools |", "|---|---|---|", *lines]


def _searches(tables: Mapping[str, Any], figures: Mapping[str, float]) -> list[str]:
    return [
        f"Every {tables['every']}th tenant searched. Of {figures['results']:,.0f} results, up to {tables['limit']} a "
        f"search, {figures['foreign']:.0f} were a tool of another tenant. A search took {_times(figures, 'search')}; "
        f"the first one of a tenant, whose board is built for it, {_times(figures, 'first_search')} (p50 / p95, ms).",
    ]


def _others(tables: Mapping[str, Any], figures: Mapping[str, float]) -> list[str]:
    lines = [
        f"| {said.format(**tables)} | {figures[f'seconds/{name}']:,.0f} | {figures[f'searches/{name}']:,.0f} "
        f"| {_times(figures, name)} | {figures[f'p99_ms/{name}']:.1f} | {figures[f'p95_ratio/{name}']:.2f} |"
        for name, said in PHASES.items()
    ]
    return [
        f"{tables['neighbours']} other tenants make {tables['rate']} searches a second, each timed from when it was "
        f"due (load of the machine {tables['load']:.1f}). The import is in {tables['rounds']} parts with quiet times "
        f"between them. It embedded {tables['imported'] / figures['seconds/importing']:.0f} tools a second beside the "
        f"searches; the flood had {figures['flood_answers'] / figures['seconds/flooded']:.0f} answers a second.\n",
        "| beside the searches | s | searches | p50 / p95 ms | p99 ms | p95, times the quiet one |",
        "|---|---|---|---|---|---|",
        *lines,
    ]


def _times(figures: Mapping[str, float], name: str) -> str:
    return f"{figures[f'p50_ms/{name}']:.1f} / {figures[f'p95_ms/{name}']:.1f}"
