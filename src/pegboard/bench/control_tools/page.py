"""The section of the benchmark page on the control tools of frameworks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard.bench.results import measured

HEAD = """## Control tools of agent frameworks

Written by `{command}`, after `scripts/install_frameworks.py`. {measured}.

An agent ends, hands off or answers in a shape by calling a tool of its framework. Ten frameworks, each with its own
packages, send {asks} ordinary asks through `pegboard serve` to a scripted model, behind a provider that checks every
request; beside its control tools each agent has {tools} tools of a catalog. Once with the default configuration, once
with `ways = ["tools"]`, where tools are left out whatever that costs. Dropped is a control tool that requests sent
directly have and one through the gateway has not; a loop that has not ended ran into its limit of steps, or failed.

| framework | control tools | requests | required | filtered: default, `tools` | tools dropped | loops not ended |
|---|---|---|---|---|---|---|
"""


def section(results: Mapping[str, Any]) -> str:
    tables = results["tables"]
    about = {"command": results["command"], "measured": measured(results), "asks": tables["asks"]}
    rows = (_row(name, by, results["figures"], tables["asks"]) for name, by in tables["frameworks"].items())
    return HEAD.format(**about, tools=tables["tools"]) + "".join(rows)


def _row(name: str, by: Mapping[str, Any], figures: Mapping[str, float], asks: int) -> str:
    default, tools = by["default"], by["tools"]
    cells = (
        name,
        ", ".join(f"`{each}`" for each in default["control"]),
        default["requests"] + tools["requests"],
        default["required"] + tools["required"],
        f"{default['filtered']}, {tools['filtered']}",
        f"{figures[f'dropped/{name}']:.0f}",
        f"{figures[f'loops_not_ended/{name}']:.0f} of {2 * asks}",
    )
    return f"| {' | '.join(map(str, cells))} |\n"
