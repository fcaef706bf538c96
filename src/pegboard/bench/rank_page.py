"""The section of `rank.json`: ranking quality and the latency of a route."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard.bench.results import measured

METRICS = ("recall@5", "recall@10", "mrr", "ndcg@5")
METHODS: Mapping[str, str] = {
    "bm25s": "BM25, bm25s' own, on name and description",
    "bm25": "BM25F, ours, alone",
    "minilm": "`attention` ungated: cosine with the summary",
    "attention": "`attention`: θ=0.28, k=10",
    "semantic": "`semantic`: the five best cosines",
    "keyword": "`keyword`: the twenty best by keyword",
    "hybrid": "**`hybrid`**: the default",
}
INTRODUCTION = """## Ranking

Written by `{command}`; run it yourself with `PEGBOARD_DATA` set to a folder of sets (`SET/catalog.jsonl.gz`,
`SET/queries.jsonl.gz`, in the format of `pegboard rank`).

{measured}, onnxruntime {onnxruntime}. In brackets are 95% bootstrap intervals over the queries. The weights of
`hybrid` were fitted on nestful, seal_tools, stabletoolbench and toolalpaca (`scripts/fit_hybrid.py`); no set below was
seen in fitting anything.

Methods that gate (`attention`, `semantic`, `keyword`) are scored on what they let through; the others rank every tool.
"""
LATENCY = """### Latency of a route

{size} tools ({catalog}), the encoder on one thread. Times are those of a shared machine; the ratio to the encoder's own
time for the same text, measured in turns with it, is what to compare.

| figure | value |
|---|---|
| a new query | {new:.1f} ms: {over:.2f} times the encoder's own {encoder:.1f} ms |
| beyond the encoder's time | {beyond:.2f} ms |
| a query whose embedding is cached | {cached:.2f} ms |
| index from nothing, one vector a tool | {cold:.1f} s |
| a fresh process, embeddings on disk, to its first decision | {warm:.2f} s |
"""
READING = """### What to make of it

- Words and meaning joined are ahead of the better of the two, or level with it within the interval. Where there are few
  and well-described tools (mcpproxy_golden has 45) meaning alone is as good.
- The gate of `attention` (θ=0.28) costs recall: part of what it removes would have been right.
- Requests that need several tools at once (livemcp_tasks: 2.7 on average) are where every method is weakest.
"""


def section(results: Mapping[str, Any]) -> str:
    head = INTRODUCTION.format(
        command=results["command"], measured=measured(results), onnxruntime=results["versions"]["onnxruntime"]
    )
    sets = results["tables"]["sets"]
    return "\n".join([head, *(_set(name, sets[name], results["figures"]) for name in sets), _latency(results), READING])


def _set(name: str, table: Mapping[str, Any], figures: Mapping[str, float]) -> str:
    rows = [
        f"| {label} | {' | '.join(_cell(name, metric, method, table, figures) for metric in METRICS)} |"
        for method, label in METHODS.items()
        if f"recall@5/{name}/{method}" in figures
    ]
    low, high = (figures[f"recall@5_gain_{end}/{name}/hybrid"] for end in ("low", "high"))
    gain = figures[f"recall@5_gain/{name}/hybrid"]
    return "\n".join(
        [
            f"### {name} ({table['queries']} queries)\n",
            f"| | {' | '.join(METRICS)} |",
            f"|---|{'---|' * len(METRICS)}",
            *rows,
            f"\n`hybrid` over {table['best_baseline']}, recall@5, paired: {gain:+.3f} [{low:+.3f}, {high:+.3f}]\n",
        ]
    )


def _cell(name: str, metric: str, method: str, table: Mapping[str, Any], figures: Mapping[str, float]) -> str:
    low, high = table["intervals_95"][f"{metric}/{method}"]
    return f"{figures[f'{metric}/{name}/{method}']:.3f} [{low:.2f}, {high:.2f}]"


def _latency(results: Mapping[str, Any]) -> str:
    figures = results["figures"]
    size = next(key.split("/")[1] for key in figures if key.startswith("warm_start_ms/"))
    return LATENCY.format(
        size=size,
        catalog=results["tables"]["latency_catalog"],
        new=figures[f"latency_p50_ms/{size}/new"],
        over=figures[f"latency_over_encoder/{size}/new"],
        encoder=figures[f"encoder_p50_ms/{size}"],
        beyond=figures[f"latency_minus_encoder_ms/{size}/new"],
        cached=figures[f"latency_p50_ms/{size}/cached"],
        cold=figures[f"cold_index_s/{size}"],
        warm=figures[f"warm_start_ms/{size}"] / 1000,
    )
