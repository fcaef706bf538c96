"""The section of `under_load.json`: the tests of this repository on a busy machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard_bench.results import measured

SECTION = """## The tests on a busy machine

Written by `{command}`: every test, {runs:.0f} times in a row on {cores} cores, while {times} processes for each core
want to run. {workers} of them are workers of pytest, whose tests start processes of their own; the others only compute.
Nothing is written where a test failed.

{measured}.

| run | tests | failed | minutes | load, on average |
|---|---|---|---|---|
{rows}
"""
ROW = "| {run} | {tests:,.0f} | 0 | {minutes:.0f} | {load:.1f} |"


def section(result: Mapping[str, Any]) -> str:
    figures, table = result["figures"], result["tables"]

    def row(run: int) -> str:
        tests, seconds, load = (figures[f"{name}/{run}"] for name in ("tests", "seconds", "load"))
        return ROW.format(run=run, tests=tests, minutes=seconds / 60, load=load)

    return SECTION.format(
        command=result["command"],
        measured=measured(result),
        runs=figures["runs"],
        cores=result["machine"]["cores"],
        times=table["times"],
        workers=table["workers"],
        rows="\n".join(map(row, range(1, round(figures["runs"]) + 1))),
    )
