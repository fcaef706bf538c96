"""The section of `scan.json`: what the scanner of definitions finds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pegboard_bench.results import measured

INTRODUCTION = """## The scanner of definitions

Written by `{command}`; run it yourself with `PEGBOARD_DATA` set to a folder of sets. {measured}.

[The scanner](trust-and-spend.md#definitions-that-seem-poisoned) looks at every definition of catalogs of real tools.
These are taken to be harmless, so each one that it suspects counts as a false alarm; none has been proved so, and a
tool may be in several catalogs. The rules were narrowed where they were wrong on these very catalogs: on others expect
more. "Something found" is what any rule found, also below the score of 0.5.

| tools of | tools | suspicious | share | something found | ms of the processor a definition, mean / p50 / p99 |
|---|---|---|---|---|---|
"""
NAMED = """
The suspicious ones of `{name}`: {tools}.
"""
RULES = """
By rule, over all these catalogs; a definition may have findings of several rules.

| rule | suspicious definitions | definitions with a finding |
|---|---|---|
"""
POISONS = """
Poisons are planted, one at a time, into {carriers} real tools in which nothing was found. Rules were fitted to one
part of them; the other part was written before any rule was tried on it, by the same author, and no rule was changed
because of it. Caught is what is suspicious afterwards.

| kind | caught, fitted | caught, held out |
|---|---|---|
"""


def section(results: Mapping[str, Any]) -> str:
    tables = results["tables"]
    head = INTRODUCTION.format(command=results["command"], measured=measured(results))
    return "".join(
        [
            head,
            *_catalogs(tables["catalogs"]),
            *_named(tables["catalogs"]),
            RULES,
            *_rules(tables["catalogs"]),
            POISONS.format(carriers=tables["carriers"]),
            *_kinds(tables["poisons"], results["figures"]),
        ]
    )


def _catalogs(catalogs: Mapping[str, Any]) -> Iterator[str]:
    for name, row in catalogs.items():
        share = f"{row['suspicious'] / row['tools']:.2%}"
        times = f"{row['mean_ms']:.2f} / {row['p50_ms']:.2f} / {row['p99_ms']:.2f}"
        yield f"| `{name}` | {row['tools']:,} | {row['suspicious']:,} | {share} | {row['found']:,} | {times} |\n"


def _named(catalogs: Mapping[str, Any]) -> Iterator[str]:
    for name, row in catalogs.items():
        if row["named"]:
            yield NAMED.format(name=name, tools=", ".join(f"`{tool}`" for tool in row["named"]))


def _rules(catalogs: Mapping[str, Any]) -> Iterator[str]:
    rows = catalogs.values()
    for rule in dict.fromkeys(rule for row in rows for rule in row["found_by_rule"]):
        counts = (sum(row[key].get(rule, 0) for row in rows) for key in ("suspicious_by_rule", "found_by_rule"))
        yield f"| `{rule}` | {' | '.join(f'{count:,}' for count in counts)} |\n"


def _kinds(poisons: Mapping[str, Any], figures: Mapping[str, float]) -> Iterator[str]:
    for kind in poisons["fit"]:
        cells = (_share(*poisons[part][kind]) for part in ("fit", "held_out"))
        yield f"| {kind} | {' | '.join(cells)} |\n"
    yield f"| all | {figures['hit_rate/fit']:.0%} | {figures['hit_rate/held_out']:.0%} |\n"


def _share(caught: int, planted: int) -> str:
    return f"{caught / planted:.0%} of {planted}"
