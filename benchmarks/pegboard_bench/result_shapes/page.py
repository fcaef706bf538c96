"""The section of `shaping.json`: what shaped results save, and what they still say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard_bench.results import measured

INTRODUCTION = """## Results of tools

Written by `{command}`. {measured}. {results:.0f} results of {tools:.0f} tools of {servers:.0f} servers from PyPI and
npm, recorded over real local data: this repository, metadata of packages in databases, an issue tracker's JSON, pages.
{questions:.0f} questions are made by rule from what was recorded, as many of each result: {value} values
in JSON, {line} lines, {page} texts of pages. They stand before the call, behind 80 other words. A checker answers them
from the text that a model gets. Tokens are those of `o200k_base`.

| form | tokens | saved | answered by the text | of results that are not cut | with `read_result` |
|---|---|---|---|---|---|
| `whole` | {before:,.0f} | | 100 % | 100 % | |
"""
PEERS = """
| JSON results alone | tokens | saved |
|---|---|---|
| as they were sent | {before:,.0f} | |
"""
BILLED = """
{conversations:.0f} conversations of agents are constructed around the recorded results, sent in the LLM gateway's
shapes, and billed by the simulated [prompt caches](prompt-cache.md) of {models}.
The ratio is to the same conversation with whole results. Half of the results are asked a question, and half of the
questions stand before the call; what the text does not say is read by `read_result`, in a request of its own, whose
call is paid as output. {heavy:.0f} conversations have more than 30 % of their tokens in results.

| form | all together | median where results are large | median | most | above 1.01 | readings on |
|---|---|---|---|---|---|---|
"""
NAMES = {"minified": "without blanks", "toon": "TOON, where it is shorter", "shaped": "`shaped`"}
BIGGEST = 20


def section(results: Mapping[str, Any]) -> str:
    figures, tables = results["figures"], results["tables"]
    counts = {name: figures[name] for name in ("results", "tools", "servers", "questions")}
    head = INTRODUCTION.format(
        command=results["command"],
        measured=measured(results),
        before=figures["tokens/before"],
        **counts,
        **tables["kinds"],
    )
    forms = "\n".join(_form(figures, form) for form in ("shaped", "handle"))
    text = f"""
Questions that come up after the call: {figures["answered/handle/later"]:.1%} are answered by the text of `handle`, all
others by `read_result` ({figures["recoverable/handle/later"]:.1%} together). {figures["questions"]:.0f} other
questions, of a second draw: {figures["answered/handle/others"]:.1%}. Which lines are kept was written
with the missed questions of all tools and the score of the second draw in view, which has the same
tools: no figure here is of unseen ones.
The first tokens of each result, as many as `handle` gives, answer {figures["answered/head"]:.1%}. Two replays, the
second in another process, {"give the same bytes" if figures["stable"] else "differ"}. `handle` cuts what is above
{tables["budget"]:,} tokens.
"""
    billed = _billed(figures, tables["billing"]) if "billing" in tables else ""
    return head + forms + "\n" + text + _peers(figures) + _times(figures) + billed + _tools(tables["tools"])


def _form(figures: Mapping[str, float], form: str) -> str:
    return (
        f"| `{form}` | {figures[f'tokens/{form}']:,.0f} | {figures[f'saved/{form}']:.1%} | "
        f"{figures[f'answered/{form}']:.1%} | {figures[f'within/{form}']:.1%} | {figures[f'recoverable/{form}']:.1%} |"
    )


def _billed(figures: Mapping[str, float], table: Mapping[str, Any]) -> str:
    rows = [
        f"| `{form}` | {figures[f'billed/{form}/total']:.2f} | {figures[f'billed/{form}/median-heavy']:.2f} | "
        f"{figures[f'billed/{form}/median']:.2f} | {figures[f'billed/{form}/most']:.3f} | "
        f"{figures[f'billed/{form}/above']:.0f} | {figures[f'billed/{form}/reads']:.0f} |"
        for form in ("shaped", "handle")
    ]
    counts = {name: figures[f"billed/{name}"] for name in ("conversations", "heavy")}
    return BILLED.format(models=", ".join(table["models"]), **counts) + "\n".join(rows) + "\n"


def _peers(figures: Mapping[str, float]) -> str:
    before = figures["json/before"]
    rows = [
        f"| {name} | {figures[f'json/{kind}']:,.0f} | {1 - figures[f'json/{kind}'] / before:.1%} |"
        for kind, name in NAMES.items()
        if f"json/{kind}" in figures
    ]
    return PEERS.format(before=before) + "\n".join(rows) + "\n"


def _times(figures: Mapping[str, float]) -> str:
    kinds = {"json-4kb": "JSON, 4 KB", "rows-4kb": "rows, 4 KB", "text-4kb": "text, 4 KB"}
    kinds |= {
        "json-1mb": "nested JSON, 1 MB",
        "rows-1mb": "rows, 1 MB",
        "text-1mb": "text, 1 MB",
        "page-1mb": "page, 1 MB",
    }
    kinds = {kind: name for kind, name in kinds.items() if f"ms/shaped/{kind}" in figures}
    head = f"\n| processor time, ms | {' | '.join(kinds.values())} |\n{'|---' * (len(kinds) + 1)}|\n"
    rows = []
    for form, name in (("shaped", "`shaped`"), ("handle", "`handle`"), ("asked", "`handle`, asked before")):
        times = [f"{figures[f'ms/{form}/{kind}']:.2f}" for kind in kinds]
        rows.append(f"| {name} | {' | '.join(times)} |")
    busy = figures.get("load/times")
    load = "" if busy is None else f"\nMeanwhile {busy:.0f} processes wanted to run on the machine's cores.\n"
    return head + "\n".join(rows) + "\n" + load


def _tools(tools: Mapping[str, Mapping[str, int]]) -> str:
    """The tools with the most tokens; the file has all."""
    head = "\n| tool | results | tokens | `shaped` | `handle` |\n|---|---|---|---|---|\n"
    largest = sorted(tools.items(), key=lambda each: -each[1]["before"])[:BIGGEST]
    rows = [
        f"| {name} | {row['results']} | {row['before']:,} | {row['shaped']:,} | {row['handle']:,} |"
        for name, row in largest
    ]
    return head + "\n".join(rows) + "\n"
