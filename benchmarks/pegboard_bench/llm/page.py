"""The section of `llm.json`: what a request through the LLM gateway costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard_bench.results import measured

NAMES: Mapping[str, str] = {
    "direct": "direct",
    "passthrough": "Pegboard, filtering off",
    "filter_repeat": "Pegboard, the same request again",
    "filter_new": "Pegboard, a new query each time",
    "litellm": "LiteLLM's proxy",
}
INTRODUCTION = """## A request through the LLM gateway

Written by `{command}`. {measured}{litellm}.

A Chat Completions request of 104 KB with 120 tools goes to a mock that answers at once: directly, through
`pegboard serve` (one process, the encoder on one thread, access log off), and through LiteLLM's proxy (one worker).
`wrk` loads each for {seconds} s, with 1 client and with 16, in {rounds} rounds whose order rotates. Load, mock and
gateway share the cores. Times are medians over the rounds in milliseconds; "added" is over the direct request of the
same round, requests a second have their least and most in brackets. The encoder alone takes {encoder:.1f} ms for such
a new query, on one thread, in the same run.

| | added p50 | p50 / p95 / p99, 1 client | p50 / p95 / p99, 16 clients | requests/s, 16 clients | over LiteLLM | MB |
|---|---|---|---|---|---|---|
"""


def section(results: Mapping[str, Any]) -> str:
    tables = results["tables"]
    head = INTRODUCTION.format(
        command=results["command"],
        measured=measured(results),
        litellm=f", litellm {tables['litellm']}" if "litellm" in tables else "",
        seconds=tables["seconds"],
        rounds=tables["rounds"],
        encoder=results["figures"]["encoder_p50_ms"],
    )
    rows = [_row(name, results) for name in NAMES if f"{name}/1" in tables["loads"]]
    return head + "\n".join(rows) + "\n"


def _row(name: str, results: Mapping[str, Any]) -> str:
    figures, loads = results["figures"], results["tables"]["loads"]
    added = figures.get(f"added_p50_ms/{name}", figures.get("litellm_added_p50_ms") if name == "litellm" else None)
    over = figures.get(f"rps_over_litellm/{name}")
    one, many = loads[f"{name}/1"], loads[f"{name}/16"]
    cells = [
        NAMES[name],
        "" if added is None else f"{added:.2f}",
        _times(one),
        _times(many),
        f"{many['rps']:,.0f} [{many['rps_least']:,.0f}, {many['rps_most']:,.0f}]",
        "" if over is None else f"{over:.1f}",
        "" if name == "direct" else f"{results['tables']['rss_mb'][name]:.0f}",
    ]
    return f"| {' | '.join(cells)} |"


def _times(load: Mapping[str, float]) -> str:
    return " / ".join(f"{load[name]:.2f}" for name in ("p50_ms", "p95_ms", "p99_ms"))
