"""The section of `index.json`: what the indexes cost and find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pegboard_bench.results import measured

NAMES: Mapping[str, str] = {
    "exact": "exact",
    "faiss": "FAISS",
    "faiss_hnsw": "FAISS, HNSW (for comparison)",
    "chroma": "Chroma",
    "pgvector": "PostgreSQL with pgvector",
    "qdrant": "Qdrant's client, in process",
}
SERVED = {"faiss": "FAISS", "chroma": "Chroma", "pgvector": "pgvector"}
"""Indexes that the profile is ranked through."""
FILTERS: Mapping[str, str] = {"any": "no filter", "few_servers": "every 20th server", "some_excluded": "200 left out"}
INTRODUCTION = """## Indexes for vectors

Written by `{command}`. {measured}, faiss-cpu {faiss}; one thread, one search at a time, each index in a process of its
own, servers on the same core. The {real:,} vectors are of real tools; the {synthesised:,} are **synthesised**
from them: the real ones, then copies, each moved off its model at random until their cosine is 0.78. {queries} real
requests, k = 10. Recall is the share of the exact ten that was found. FAISS is exact up to {above:,} vectors, and looks
through lists (IVF) beyond. "Exact" is the oracle's search, which looks at a filter tool by tool; a route takes one
product of its matrix instead.
"""
OF_PGVECTOR = """
pgvector compares all vectors up to {above:,} too, and asks a graph (HNSW) beyond; its MB are tables and graph on disk.
Qdrant's server is in no registry of packages: the engine in its client is measured, which compares all vectors.
"""
RANKING = """### Ranking through an index

`hybrid` scores the {candidates} nearest of each vector of a request and the {candidates} best by words instead of all
tools. The last columns: how much of what a turn is given is the same as with the exact index.

{head}
"""


def section(results: Mapping[str, Any]) -> str:
    tables, figures = results["tables"], results["figures"]
    head = INTRODUCTION.format(
        command=results["command"],
        measured=measured(results),
        faiss=results["versions"].get("faiss-cpu", "?"),
        real=tables["real"],
        synthesised=tables["synthesised"],
        queries=tables["queries"],
        above=tables["approximate_above"],
    )
    if f"build_s/{tables['real']}/pgvector" in figures:
        head += OF_PGVECTOR.format(above=tables["approximate_above"])
    ranked = [index for index in SERVED if f"recall@5_loss/{tables['sets'][0]}/{index}" in figures]
    parts = [_size(size, title, figures) for size, title in _sizes(tables).items()]
    rows = [_ranking(name, ranked, figures) for name in tables["sets"]]
    ranking = RANKING.format(candidates=tables["candidates"], head=_ranking_head(ranked))
    return "\n".join([head, *parts, ranking + "\n".join(rows), ""])


def _sizes(tables: Mapping[str, Any]) -> dict[int, str]:
    return {
        tables["real"]: f"{tables['real']:,} tools",
        tables["synthesised"]: f"{tables['synthesised']:,} synthesised vectors",
    }


def _size(size: int, title: str, figures: Mapping[str, float]) -> str:
    head = " | ".join(f"{name}: p50 / p95 ms, recall" for name in FILTERS.values())
    rows = [f"### {title}\n", f"| index | build, s | MB | {head} |", "|---" * (3 + len(FILTERS)) + "|"]
    for backend, name in NAMES.items():
        if f"build_s/{size}/{backend}" in figures:
            cells = [_cell(f"{size}/{backend}/{each}", figures) for each in FILTERS]
            cost = f"{figures[f'build_s/{size}/{backend}']:.1f} | {figures[f'memory_mb/{size}/{backend}']:.0f}"
            rows.append(f"| {name} | {cost} | {' | '.join(cells)} |")
    return "\n".join([*rows, ""])


def _cell(name: str, figures: Mapping[str, float]) -> str:
    if f"p50_ms/{name}" not in figures:
        return ""
    return f"{figures[f'p50_ms/{name}']:.2f} / {figures[f'p95_ms/{name}']:.2f}, {figures[f'recall@10/{name}']:.4f}"


def _ranking_head(ranked: Sequence[str]) -> str:
    first, *others = (SERVED[index] for index in ranked)
    lost = " | ".join(f"{SERVED[index]} loses" for index in ranked)
    same = " | ".join([f"{first}, same tools", *others])
    return f"| set | exact, recall@5 | {lost} | {same} |\n{'|---' * (2 + 2 * len(ranked))}|"


def _ranking(name: str, ranked: Sequence[str], figures: Mapping[str, float]) -> str:
    lost = [f"{figures[f'recall@5_loss/{name}/{index}']:.4f}" for index in ranked]
    same = [f"{figures[f'same_selection/{name}/hybrid_{index}']:.3f}" for index in ranked]
    return f"| {name} | {figures[f'recall@5/{name}/hybrid_exact']:.4f} | {' | '.join([*lost, *same])} |"
