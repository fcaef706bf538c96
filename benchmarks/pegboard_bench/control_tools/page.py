"""The section of the benchmark page on the control tools of frameworks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard_bench.results import measured

HEAD = """## Control tools of agent frameworks

Written by `{command}`, after `scripts/install_frameworks.py`. {measured}.

An agent ends, hands off or answers in a shape by calling a tool of its framework. Ten frameworks, each with its own
packages, send {asks} ordinary asks through `pegboard serve` to a scripted model, behind a provider that checks every
request; beside its control tools each agent has {tools} tools of a catalog. Once with the default configuration, once
with `ways = ["tools"]`, where tools are left out whatever that costs; and, so that zero means something, {control_asks}
asks with `protect = false` besides. Dropped is a control tool that requests sent directly have and one through the
gateway has not; a loop that has not ended ran into its limit of steps, or failed. Directly every loop {directly}.

| framework | control tools | requests | required | filtered ‡ | dropped | not ended | † dropped | † not ended |
|---|---|---|---|---|---|---|---|---|
"""
TAIL = """
† Without protection. ‡ In the default configuration, and with `ways = ["tools"]`.

Together {dropped} of {possible} control tools were dropped and {not_ended} of {loops} loops did not end; without
protection {dropped_unprotected} of {possible_unprotected}, and {not_ended_unprotected} of {loops_unprotected}. Filtered
are requests with fewer tools of the catalog than the agent has: in the default configuration the first ones pass whole
while a catalog is being embedded, and later ones where all tools, cached, cost less. The supervisor of LangGraph has
five handoffs, and with so many tools of its own an agent gets [one tool for all others](call-tool.md) by default:
{one_tool} of its requests.
"""


def section(results: Mapping[str, Any]) -> str:
    tables = results["tables"]
    frameworks = tables["frameworks"]
    about = {"command": results["command"], "measured": measured(results), "asks": tables["asks"]}
    not_ended_directly = sum(by["default"]["not_ended_directly"] for by in frameworks.values())
    head = HEAD.format(
        **about,
        tools=tables["tools"],
        control_asks=next(iter(frameworks.values()))["unprotected"]["asks"],
        directly=f"but {not_ended_directly} ended" if not_ended_directly else "ended",
    )
    rows = (_row(name, by) for name, by in frameworks.items())
    return head + "".join(rows) + _tail(frameworks)


def _row(name: str, by: Mapping[str, Any]) -> str:
    default, tools, unprotected = by["default"], by["tools"], by["unprotected"]
    cells = (
        name,
        ", ".join(f"`{each}`" for each in default["control"]),
        default["requests"] + tools["requests"],
        default["required"] + tools["required"],
        f"{default['filtered']}, {tools['filtered']}",
        _share("dropped", "possible_losses", default, tools),
        _share("not_ended", "asks", default, tools),
        _share("dropped", "possible_losses", unprotected),
        _share("not_ended", "asks", unprotected),
    )
    return f"| {' | '.join(map(str, cells))} |\n"


def _share(part: str, whole: str, *of: Mapping[str, Any]) -> str:
    return f"{sum(each[part] for each in of)} of {sum(each[whole] for each in of)}"


def _tail(frameworks: Mapping[str, Any]) -> str:
    def total(field: str, *configurations: str) -> int:
        return sum(by[each][field] for by in frameworks.values() for each in configurations)

    protected = ("default", "tools")
    return TAIL.format(
        dropped=total("dropped", *protected),
        possible=total("possible_losses", *protected),
        not_ended=total("not_ended", *protected),
        loops=total("asks", *protected),
        dropped_unprotected=total("dropped", "unprotected"),
        possible_unprotected=total("possible_losses", "unprotected"),
        not_ended_unprotected=total("not_ended", "unprotected"),
        loops_unprotected=total("asks", "unprotected"),
        one_tool=total("through_one_tool", "default"),
    )
