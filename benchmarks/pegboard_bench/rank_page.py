"""The section of `rank.json`: ranking quality beside peers, calibration, and the latency of a route."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pegboard_bench.certainty import ASKED
from pegboard_bench.peers import BASELINES, PEERS
from pegboard_bench.pictures import RELIABILITY, TOKENS
from pegboard_bench.results import measured

METRICS = ("recall@1", "recall@3", "recall@5", "recall@10", "mrr", "ndcg@5", "full@10")
METHODS: Mapping[str, str] = {
    "bm25": "BM25 (bm25s) on name and description",
    **{peer.name: peer.title for peer in BASELINES},
    **{peer.name: f"{peer.name}: {peer.title}" for peer in PEERS},
    "bm25f": "BM25F, ours, alone",
    "attention_ungated": "`attention` ungated: cosine with the summary",
    "attention": "`attention`: θ=0.28, k=10",
    "semantic": "`semantic`: the five best cosines",
    "keyword": "`keyword`: the twenty best by keyword",
    "hybrid": "**`hybrid`**: the default",
}
GOALS = {
    "livemcp_tasks": 0.50,
    "livemcp_steps": 0.90,
    "livemcp_routes": 0.82,
    "mcpverse": 0.70,
    "graphtoolcall": 0.95,
    "metatool": 0.85,
    "mcpproxy_golden": 0.975,
}
ABLATIONS: Mapping[str, str] = {
    "hybrid": "all of it",
    "hybrid_untuned": "the encoder as published, not tuned",
    "hybrid_with_one_text": "one text a tool (name and description) in place of two",
    "hybrid_without_clause": "without clauses",
    "hybrid_without_cosine": "without the whole query's cosine (clauses alone)",
    "hybrid_without_bm25": "without words",
    "hybrid_without_server": "without the server's similarity",
}
INTRODUCTION = """## Ranking

Written by `{command}`; run it yourself with `PEGBOARD_DATA` set to a folder of sets (`SET/catalog.jsonl.gz`,
`SET/queries.jsonl.gz`, in the format of `pegboard rank`).

{measured}, onnxruntime {onnxruntime}. In brackets are 95% bootstrap intervals over the queries.

What was fitted on what: the encoder was tuned on seal_tools, stabletoolbench and requests written for tools of public
catalogs ([its card](../src/pegboard/retrieval/encoders/minilm/MODEL_CARD.md)), the fusion and its calibration on
held-out queries of stabletoolbench, on toolalpaca, nestful, more such requests and short ones made of tools' names
(`scripts/fit_fusion.py`). No set
below gave a query to either. The share of tuned weights, the rule that lines of `label: value` are one wish, leaving
seal_tools out of the fusion, and the form and weight of its part `name` were decided with these sets in sight: the last
of them is too new for the figures below, which were measured before it.

Peers run in environments of their own with their own defaults, with MiniLM where they let one choose the encoder, the
slow ones on a fixed sample of large sets (marked *).{missing} Methods that gate (`attention`, `semantic`, `keyword`)
are scored on what they let through; the others rank every tool. `minilm`, `zsum` and `rrf` use MiniLM as published,
the profiles of ours the tuned one.
"""
ABLATION = """### What each part gives

Recall@5; fusions without a part are fitted again, on the same data as the whole.

| | {sets} | mean |
|---|{dashes}---|
"""
CERTAINTY = """### Can the probabilities be trusted?

Over the 20 best tools of each query, {queries} at most of each set, in 15 bins of equal mass: expected calibration
error {ece:.3f}, Brier skill {skill:.2f} over the base rate. By set: {sets}.

![Reliability]({reliability})

Mean recall that was realised where one was asked for (`--recall`), with no k and no budget:

| asked | mean | {names} |
|---|---|{dashes}
"""
SAVING = """
Tokens of definitions at a mean recall of 0.9, taking tools by their certainty and by a fixed number for all:

| set | by certainty | fixed number |
|---|---|---|
{rows}

![Tokens for a recall]({tokens})
"""
LATENCY = """
### Latency of a route

The encoder on one thread. Times are those of a shared machine; the ratio to the encoder's own time for the same text,
measured in turns with it, is what to compare. Clauses cost no run of the encoder: they are pooled from the same tokens.

| figure | {sizes} |
|---|{dashes}
{rows}
"""
READING = """### What to make of it

- Tuning the encoder gives the most, then the second text of a tool; clauses help requests for several things, words and
  the server's similarity help on some sets and cost a little on others. No part alone decides.
- Requests that need several tools at once (livemcp_tasks: 2.7 on average) stay the hardest: half of the tools are among
  the first five. Selections that are asked for a recall reach it on average over the sets, not on each: too little is
  taken for these requests, more than needed on small and clean boards. `pegboard calibrate` is for that.
- mcpproxy_golden has 47 queries and one of them is missed, by MiniLM alone too.
"""
FIGURES: Mapping[str, tuple[str, str]] = {
    "latency_p50_ms/{size}/new": ("a new query, ms", ".1f"),
    "encoder_p50_ms/{size}": ("the encoder alone, ms", ".1f"),
    "latency_over_encoder/{size}/new": ("a new query over the encoder alone", ".2f"),
    "latency_minus_encoder_ms/{size}/new": ("beyond the encoder's time, ms", ".2f"),
    "latency_p50_ms/{size}/cached": ("a query whose embedding is cached, ms", ".2f"),
    "stage_p50_ms/{size}/words": ("of it words (BM25F), ms", ".3f"),
    "stage_p50_ms/{size}/vectors": ("of it cosines, ms", ".3f"),
    "stage_p50_ms/{size}/fusion": ("of it fusion and calibration, ms", ".3f"),
    "index_ms_per_vector/{size}": ("index from nothing, ms a vector (two texts a tool)", ".1f"),
    "cold_index_s/{size}": ("index from nothing, s", ".1f"),
    "memory_mb/{size}/vectors": ("memory of the vectors, MB", ".1f"),
    "memory_mb/{size}/words": ("memory of the words, MB", ".1f"),
    "warm_start_ms/{size}": ("a fresh process, embeddings on disk, to its first decision, ms", ".0f"),
}


def section(results: Mapping[str, Any]) -> str:
    tables, figures = results["tables"], results["figures"]
    missing = tables["peers_missing"]
    head = INTRODUCTION.format(
        command=results["command"],
        measured=measured(results),
        onnxruntime=results["versions"]["onnxruntime"],
        missing=f" Not run: {'; '.join(sorted(missing.values()))}." if missing else "",
    )
    sets = tables["sets"]
    parts = [head, _overview(sets, figures), *(_set(name, sets[name], figures) for name in sets)]
    return "\n".join([*parts, _ablation(sets, figures), _certainty(results), _latency(figures), READING])


def _overview(sets: Mapping[str, Any], figures: Mapping[str, float]) -> str:
    rows = [
        f"| {name} | {GOALS[name]:g} | {figures[f'recall@5/{name}/hybrid']:.3f} | {sets[name]['best_baseline']} | "
        f"{figures[f'recall@5_gain/{name}/hybrid']:+.3f} [{figures[f'recall@5_gain_low/{name}/hybrid']:+.3f}, "
        f"{figures[f'recall@5_gain_high/{name}/hybrid']:+.3f}] |"
        for name in sets
        if name in GOALS
    ]
    mean = f"| mean | 0.81 | {figures['recall@5/mean/hybrid']:.3f} | | |"
    columns = "| set | goal | `hybrid`, recall@5 | best other | ours minus that, paired |\n|---|---|---|---|---|"
    return "\n".join([columns, *rows, mean, ""])


def _set(name: str, table: Mapping[str, Any], figures: Mapping[str, float]) -> str:
    rows = [
        f"| {label}{'*' if method in table['sampled'] else ''} | "
        f"{' | '.join(_cell(name, metric, method, table, figures) for metric in METRICS)} |"
        for method, label in METHODS.items()
        if f"recall@5/{name}/{method}" in figures
    ]
    columns = f"| | {' | '.join(METRICS)} |\n|---|{'---|' * len(METRICS)}"
    return "\n".join([f"### {name} ({table['queries']} queries)\n", columns, *rows, ""])


def _cell(name: str, metric: str, method: str, table: Mapping[str, Any], figures: Mapping[str, float]) -> str:
    low, high = table["intervals_95"][f"{metric}/{method}"]
    return f"{figures[f'{metric}/{name}/{method}']:.3f} [{low:.2f}, {high:.2f}]"


def _ablation(sets: Mapping[str, Any], figures: Mapping[str, float]) -> str:
    head = ABLATION.format(sets=" | ".join(sets), dashes="---|" * len(sets))
    return head + "\n".join(_ablated(sets, figures)) + "\n"


def _ablated(sets: Mapping[str, Any], figures: Mapping[str, float]) -> Iterator[str]:
    for method, label in ABLATIONS.items():
        if all(f"recall@5/{name}/{method}" in figures for name in sets):
            values = [figures[f"recall@5/{name}/{method}"] for name in sets]
            yield f"| {label} | {' | '.join(f'{value:.3f}' for value in values)} | {sum(values) / len(values):.3f} |"


def _certainty(results: Mapping[str, Any]) -> str:
    sets, figures = list(results["tables"]["sets"]), results["figures"]
    head = CERTAINTY.format(
        queries=200,
        ece=figures["ece_top20/unseen"],
        skill=figures["brier_skill_top20/unseen"],
        sets=", ".join(f"{name} {figures[f'ece_top20/{name}']:.3f}" for name in sets),
        reliability=RELIABILITY,
        names=" | ".join(sets),
        dashes="---|" * len(sets),
    )
    rows = [
        f"| {asked:g} | {' | '.join(f'{value:.2f}' for value in _realised(asked, sets, figures))} |" for asked in ASKED
    ]
    saving = SAVING.format(rows="\n".join(_saved(sets, figures)), tokens=TOKENS)
    return head + "\n".join(rows) + "\n" + saving


def _realised(asked: float, sets: Sequence[str], figures: Mapping[str, float]) -> list[float]:
    return [figures[f"realised_recall_{asked:g}/{name}"] for name in ("mean", *sets)]


def _saved(sets: Sequence[str], figures: Mapping[str, float]) -> Iterator[str]:
    for name in sets:
        tokens = [figures.get(f"tokens_at_recall_0.9/{name}/{method}") for method in ("hybrid", "hybrid_fixed_k")]
        ours, fixed = ("not reached" if each is None else f"{each:,.0f}" for each in tokens)
        yield f"| {name} | {ours} | {fixed} |"


def _latency(figures: Mapping[str, float]) -> str:
    sizes = sorted({key.split("/")[1] for key in figures if key.startswith("encoder_p50_ms/")}, key=int)
    rows = [
        f"| {label} | {' | '.join(_timed(figures, name.format(size=size), form) for size in sizes)} |"
        for name, (label, form) in FIGURES.items()
    ]
    shown = " | ".join(f"{int(size):,} tools" for size in sizes)
    return LATENCY.format(sizes=shown, dashes="---|" * len(sizes), rows="\n".join(rows))


def _timed(figures: Mapping[str, float], name: str, form: str) -> str:
    return f"{figures[name]:{form}}" if name in figures else ""
