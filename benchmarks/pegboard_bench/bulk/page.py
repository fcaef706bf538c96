"""The section of `bulk.json`: vectors built in advance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from pegboard_bench.results import measured

INTRODUCTION = """## Vectors built in advance

Written by `{command}`: [`pegboard index build`](index-build.md), in parts that are measured by themselves.
"""
THROUGHPUT = """
### Throughput

{measured}; load of the machine before: {load_before:.1f}. {tools:,} tools, {real:,} of them real and all different, in
shards of {shard_size}; {rounds} rounds in alternation: the median, and in brackets the least and the most. The time is
from the first shard's begin to the last one's end, that of a tool times the number of workers. The ratio is the speed
over that of one process in the same round, times {workers} workers; with the start, that of whole commands. The start
is from the command to the first shard's begin: Python, the catalog, its digests, the processes of the pool or of Ray.

| | tools a second | processor, ms a tool | time, ms a tool and worker | ratio | ratio with the start | start, s |
|---|---|---|---|---|---|---|
"""
NAMES = {"one": "one process", "local": "{workers} local workers", "ray": "{workers} workers of Ray"}
COST = """
A worker uses {cores:.2f} cores at most: the encoder has one thread there. In {of} tools, on one thread and the best of
three: the model {model:.1f} ms a tool, its tokens {tokens:.2f}, digests {digests:.2f}, the scanner {scan:.2f}; a tool
has {texts:.2f} different texts with {count:.0f} tokens, and batches of similar lengths add {padding:.1%}.
"""
KILLED = """
### Killed

{measured}; load of the machine {load:.1f}, so that the times are no measure of speed. {tools:,} tools on {workers}
workers of {engine}, in shards of {shard_size:,}: {real:,} real ones{made}. The run was killed {kills:.0f} times with
SIGKILL ({victims}), each time once a random share of the tools was there and a random part of a shard's time had gone
by. After {went_on:.0f} of the kills it went on by itself, and it was started {starts:.0f} times in all;
{left:.0f} processes outlived their driver by two minutes.

**Of {files:.0f} files ({megabytes:,.0f} MB), {differ:.0f} differ from those of an undisturbed run** by their SHA-256.
That run took {undisturbed_s:,.0f} s, the killed one {killed_s:,.0f} s with all its starts.
"""
MADE = (
    ", and short ones made from them in turn (the name with numbers, the first {sentence} characters of the "
    "description, no parameters)"
)
WARM = """
### A start

{measured}; load of the machine {load:.1f}. A board of {tools:,} tools with an empty store of vectors, from its settings
until it is ready, each time in a new process; with shards, the median of {starts} starts. The first decision embeds
{decision:.0f} more: the request.

| | texts embedded | s | s of the processor |
|---|---|---|---|
| without shards | {cold_texts:,.0f} | {cold_s:,.1f} | {cold_cpu_s:,.1f} |
| with shards | {warm_texts:,.0f} | {warm_s:.2f} | {warm_cpu_s:.2f} |
"""


def section(results: Mapping[str, Any]) -> str:
    tables, figures = results["tables"], results["figures"]
    parts = {"throughput": _throughput, "killed": _killed, "warm": _warm}
    said = [part(tables[name], figures) for name, part in parts.items() if name in tables]
    return "".join([INTRODUCTION.format(command=results["command"]), *said])


def _throughput(table: Mapping[str, Any], figures: Mapping[str, float]) -> str:
    rows = [_row(name, words.format(**table), figures) for name, words in NAMES.items() if name in table["runs"]]
    cost = COST.format(
        cores=max(figures[f"cores_a_worker_most/{name}"] for name in table["runs"]),
        of=min(table["cost_of"], table["tools"]),
        **{name: figures[f"part_ms/{name}"] for name in ("model", "tokens", "digests", "scan")},
        texts=figures["texts_a_tool"],
        count=figures["tokens_a_tool"],
        padding=figures["padding"],
    )
    return "".join([THROUGHPUT.format(measured=measured(table), **table), *rows, cost])


def _row(name: str, words: str, figures: Mapping[str, float]) -> str:
    def spread(figure: str, digits: int) -> str:
        if f"{figure}/{name}" not in figures:
            return ""
        middle, *ends = (figures[f"{figure}{which}/{name}"] for which in ("", "_least", "_most"))
        return f"{middle:.{digits}f} ({', '.join(f'{each:.{digits}f}' for each in ends)})"

    digits = {"tools_per_s": 1, "cpu_ms": 1, "wall_ms": 1, "ratio": 2, "ratio_with_start": 2, "start_s": 1}
    return f"| {words} | {' | '.join(spread(figure, of) for figure, of in digits.items())} |\n"


def _killed(table: Mapping[str, Any], figures: Mapping[str, float]) -> str:
    victims = Counter(each["victim"] for each in table["kills"])
    return KILLED.format(
        measured=measured(table),
        **{name: table[name] for name in ("load", "tools", "workers", "shard_size", "real")},
        engine={"ray": "Ray", "local": "a local pool"}[table["engine"]],
        made=MADE.format(**table) if table["tools"] > table["real"] else "",
        victims=", ".join(f"{victim}: {count}" for victim, count in sorted(victims.items())),
        **{name: figures[name] for name in ("kills", "went_on", "starts", "files", "undisturbed_s", "killed_s")},
        left=figures["processes_left"],
        megabytes=figures["bytes"] / 1e6,
        differ=figures["files_that_differ"],
    )


def _warm(table: Mapping[str, Any], figures: Mapping[str, float]) -> str:
    names = ("cold_texts", "cold_s", "cold_cpu_s", "warm_texts", "warm_s", "warm_cpu_s")
    return WARM.format(
        measured=measured(table),
        **{name: table[name] for name in ("load", "tools", "starts")},
        decision=figures["warm_texts_a_decision"],
        **{name: figures[name] for name in names},
    )
