"""The section of `hostile.json`: the gateway under attack and fault."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard_bench.results import measured

SCHEMAS = "d3/schemas"
INTRODUCTION = """## Under attack and fault

Written by `{command}`. {measured}. A real `pegboard serve` with its default limits; attacker and gateway share the
machine. *Deaf* is the longest time that `/healthz` took to answer while it went on, *memory* the most that the process
took over what it had idle. The codes are those of `tests/requirements.toml`.

| | what is done | deaf, s | memory, MB |
|---|---|---|---|
"""
OTHERS = """
### One caller's new tools, and another's request

Forty requests with twenty tools each that nobody has seen, before and after another caller brings 30,000 in six
requests.

| the requests | median, s | longest, s | unfiltered |
|---|---|---|---|
"""
RESTARTS = """
### Crashes and restarts

Fifty-four sessions of MCP clients. The gateway is back at the same address at once, the store after a second. *Refused*
is the longest time that one of the sessions got no answer.

| what crashes | store | sessions lost | refused, s |
|---|---|---|---|
"""


def section(results: Mapping[str, Any]) -> str:
    figures, says = results["figures"], results["tables"]["says"]
    head = INTRODUCTION.format(command=results["command"], measured=measured(results))
    names = [name.removeprefix("healthz_longest_s/") for name in figures if name.startswith("healthz_longest_s/")]
    about = says | {SCHEMAS: "calls whose schemas take for ever to check"}
    rows = "".join(
        f"| {name.partition('/')[0].upper()} | {about[name]} | {figures[f'healthz_longest_s/{name}']:.2f} "
        f"| {figures[f'peak_over_idle_mb/{name}']:.0f} |\n"
        for name in names
    )
    return head + rows + _others(figures) + _restarts(figures) + _stopping(results)


def _others(figures: Mapping[str, float]) -> str:
    """What one caller's new tools are to another; empty where that was not measured."""
    name = "d10/new-tools"
    if f"other_caller_median_s/alone/{name}" not in figures:
        return ""
    rows = "".join(
        f"| {said} | {figures[f'other_caller_median_s/{when}/{name}']:.2f} "
        f"| {figures[f'other_caller_longest_s/{when}/{name}']:.2f} "
        f"| {100 * figures[f'other_caller_unfiltered/{when}/{name}']:.0f}% |\n"
        for when, said in (("alone", "alone"), ("beside", "beside 30,000 new tools of another"))
    )
    return OTHERS + rows


def _restarts(figures: Mapping[str, float]) -> str:
    names = [name.removeprefix("refused_s/d9/") for name in figures if name.startswith("refused_s/d9/")]
    rows = "".join(
        f"| {name.partition('-')[0]} | {name.partition('-')[2]} | {figures[f'sessions_lost/d9/{name}']:.0f} "
        f"| {figures[f'refused_s/d9/{name}']:.2f} |\n"
        for name in names
    )
    return RESTARTS + rows if names else ""


def _stopping(results: Mapping[str, Any]) -> str:
    seconds = results["figures"].get("stop_s/d13/idle_sessions")
    if seconds is None:
        return ""
    return f"\nWith {results['tables']['idle_sessions']:,} idle sessions it takes {seconds:.1f} s to stop.\n"
