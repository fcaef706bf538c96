"""The section of `users.json`: what users with tokens of their own cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard_bench.results import measured

INTRODUCTION = """## Each user for themselves

Written by `{command}`. {measured}. {users:.0f} users call a server with `per_user`, each with a token of their own that
is exchanged for one of the server (RFC 8693). The server checks the token of every call and answers with its subject:
a call is *crossed* if that is another user, and *failed* if it is an error.

| processes | calls | crossed | failed |
|---|---|---|---|
"""
TIMES = """
Beside each call, the same one is made through a gateway without users, which sends one token for everybody, in turns
(of {block} users at a time). Added is the median of the differences, with that of the lowest and the highest block.

| | own connection | one for all | added |
|---|---|---|---|
| median, ms | {own:.2f} | {plain:.2f} | {added:.2f} ({low:.2f} to {high:.2f}) |
| 99th percentile, ms | {own_p99:.2f} | {plain_p99:.2f} | |
| processor of the gateway, ms a call | {own_cpu:.2f} | {plain_cpu:.2f} | {added_cpu:.2f} |

A user who has listed and called takes {kb:.0f} KB of the process: a gateway, the approvals, and what the server says of
itself. The server of the SDK with its handlers, TCP connections, equal definitions and the indexes over them are in
memory once.
"""
PROCESSES = {
    "one_process": "one",
    "two_replicas_redis": "two on one Redis, in turns",
    "two_replicas_postgres": "two on one PostgreSQL, in turns",
    "postgres_again": "the same, in further runs",
}


def section(results: Mapping[str, Any]) -> str:
    figures = results["figures"]
    head = INTRODUCTION.format(command=results["command"], measured=measured(results), users=figures["users"])
    rows = "".join(
        f"| {said} | {figures[f'calls/{name}']:,.0f} | {figures[f'crossed/{name}']:.0f} "
        f"| {figures[f'failed/{name}']:.0f} |\n"
        for name, said in PROCESSES.items()
        if f"calls/{name}" in figures
    )
    return (
        head
        + rows
        + TIMES.format(
            block=20,
            own=figures["p50_ms/own"],
            plain=figures["p50_ms/plain"],
            added=figures["added_p50_ms"],
            low=figures["added_p50_ms/lowest_block"],
            high=figures["added_p50_ms/highest_block"],
            own_p99=figures["p99_ms/own"],
            plain_p99=figures["p99_ms/plain"],
            own_cpu=figures["cpu_ms/own"],
            plain_cpu=figures["cpu_ms/plain"],
            added_cpu=figures["cpu_ms/own"] - figures["cpu_ms/plain"],
            kb=figures["kb_per_user"],
        )
    )
