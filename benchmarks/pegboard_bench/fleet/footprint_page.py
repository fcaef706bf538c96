"""What the page says of a server's footprint."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from pegboard_bench import results


def section(made: Mapping[str, float], table: Mapping[str, Any]) -> str:
    rounds = table["rounds"]
    return f"""
### What a server costs

Measured by itself, {results.measured(table)}: medians of {len(rounds["all"])} rounds with {table["servers"]} servers.
The gateway, the encoder included, and the process that it keeps beside each server take
{median(rounds["one"]):.0f} MB (PSS) with one server and {median(rounds["all"]):.0f} MB with all:
**{made["memory_mb_per_server"]:.1f} MB** for each server more, beside the server itself. A client of a fleet that the
gateway knows has the answer to its first search {median(rounds["known"]):.1f} s after the start; the slowest server
alone takes {median(rounds["slowest_alone"]):.1f} s to list its tools, a difference of
**{made["startup_s/known_over_slowest"]:+.1f} s**.
"""
