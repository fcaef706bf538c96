"""The section of `state.json`: what state costs, by store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard_bench.results import measured

STORES: Mapping[str, str] = {
    "memory": "memory",
    "sqlite": "SQLite {version}",
    "redis": "Redis {version}",
    "postgres": "PostgreSQL {version}",
}
WORKS: Mapping[str, str] = {
    "observe": "statistics of a call",
    "session_save": "save a session",
    "session_load": "load a session",
    "spend": "reserve and settle",
}
INTRODUCTION = """## What state costs

Written by `{command}`. {measured}. All servers run on the same machine.

The stores take turns in {rounds} rounds, in an order that rotates. Times are milliseconds of one piece of work, the
median and in brackets the 95th percentile of {samples:,}: one after the other, and 16 at once, where waiting for each
other counts. The gateway observes calls in batches, every few seconds, and loads a session once.
"""
ROOM = """
### Ten thousand sessions

Each has introduced its client, found twelve tools and called one. The gateway's process grows by what it keeps of them
in memory; beside it stands what the store takes.

| store | process, MB | store, MB |
|---|---|---|
"""


def section(results: Mapping[str, Any]) -> str:
    figures, tables = results["figures"], results["tables"]
    head = INTRODUCTION.format(
        command=results["command"],
        measured=measured(results),
        rounds=tables["rounds"],
        samples=tables["samples"]["observe"],
    )
    names = {name: _named(name, version) for name, version in tables["versions"].items()}
    rows = [f"| store | {' | '.join(f'{title} | 16 at once' for title in WORKS.values())} |", "|---" * 9 + "|"]
    for name, title in names.items():
        times = (_time(figures, work, where) for work in WORKS for where in (name, f"{name}/16"))
        rows.append(f"| {title} | {' | '.join(times)} |")
    missing = [f"\nNot measured: {_named(name, '')}. {why}\n" for name, why in tables["missing"].items()]
    room = (
        f"| {title} | {_megabytes(figures, 'rss', name)} | {_megabytes(figures, 'store', name)} |"
        for name, title in names.items()
    )
    return head + "\n" + "\n".join(rows) + "\n" + "".join(missing) + ROOM + "\n".join(room) + "\n"


def _named(name: str, version: str) -> str:
    return STORES[name].format(version=version.partition(" ")[0]).strip()


def _time(figures: Mapping[str, float], work: str, where: str) -> str:
    middle, high = (figures[f"{work}_{part}_ms/{where}"] for part in ("p50", "p95"))
    return f"{middle:.3f} [{high:.3f}]" if high < 1 else f"{middle:.2f} [{high:.2f}]"


def _megabytes(figures: Mapping[str, float], part: str, name: str) -> str:
    value = figures.get(f"{part}_mb_10000_sessions/{name}")
    return "" if value is None else f"{value:.1f}"
