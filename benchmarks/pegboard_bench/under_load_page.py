"""The section of `under_load.json`: the tests of this repository on a busy machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SECTION = """## The tests on a busy machine

Written by `{command}`: every test, {runs:.0f} times in a row without a failure, on {cores} cores ({cpu}). Processes
that want to run are workers of pytest, whose tests start processes of their own, and others that only compute. A run
that fails begins the row anew.

| date | commit | tests | failed | minutes | workers | processes for each core | load, on average |
|---|---|---|---|---|---|---|---|
{rows}
"""
ROW = "| {date} | `{commit}` | {tests:,} | 0 | {minutes:.0f} | {workers} | {times} | {load:.1f} |"


def section(result: Mapping[str, Any]) -> str:
    rows = [
        ROW.format(
            date=run["date"][:10],
            commit=run["commit"][:12],
            tests=run["tests"],
            minutes=run["seconds"] / 60,
            workers=run["workers"],
            times=run["times"],
            load=run["load"] or 0.0,
        )
        for run in result["tables"]["row"]
    ]
    return SECTION.format(
        command=result["command"],
        runs=result["figures"]["runs"],
        cores=result["machine"]["cores"],
        cpu=result["machine"]["cpu"],
        rows="\n".join(rows),
    )
