"""The section of `priced.json`: what EHRR's two layers add to retrieval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard_bench.results import measured

LIMIT = 2.0
"""Milliseconds at the median that the two layers may add, over 9,812 tools."""

INTRODUCTION = """## What pricing adds to retrieval

Written by `{command}`; run it yourself with `PEGBOARD_DATA` set to a folder of sets.

{measured}, one thread. {tools:,} {kind} tools on {servers:,} servers, all of which have been called, {routes} routes.
The vectors are random: the work does not depend on them, and the encoder's time belongs to neither side.

| | p50, ms | p95, ms |
|---|---:|---:|
| retrieval: one cosine a tool | {retrieval[p50]:.2f} | {retrieval[p95]:.2f} |
| **added by eqs. 1-7** of every server and tool | {cached[p50]:.2f} | {cached[p95]:.2f} |
| added, with a call between two routes that every average follows | {learning[p50]:.2f} | {learning[p95]:.2f} |

At most {limit:g} ms at the median was the aim: {met}.
"""


def section(results: Mapping[str, Any]) -> str:
    figures, tables = results["figures"], results["tables"]

    def times(name: str) -> dict[str, float]:
        return {share: figures[name.format(share)] for share in ("p50", "p95")}

    added = f"economics_added_{{}}_ms/{tables['tools']}"
    learning = times(f"{added}/learning")
    return INTRODUCTION.format(
        command=results["command"],
        measured=measured(results),
        retrieval=times(f"retrieval_{{}}_ms/{tables['tools']}"),
        cached=times(f"{added}/cached"),
        learning=learning,
        kind="synthetic" if tables["synthetic"] else "real",
        limit=LIMIT,
        met="met" if learning["p50"] <= LIMIT else "missed",
        **{name: tables[name] for name in ("tools", "servers", "routes")},
    )
