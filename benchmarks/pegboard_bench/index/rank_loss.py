"""What ranking through an index loses, on labelled sets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from pegboard.compose import build_routing, default_parts
from pegboard.evaluation import ranking_metrics
from pegboard.evaluation.datasets import read_set
from pegboard.evaluation.methods import best
from pegboard.retrieval import CachedEncoder, OnnxEncoder
from pegboard.settings import load_settings
from pegboard.stores import MemoryEvents, SqliteEmbeddings
from pegboard.stores.sqlite.backend import EMBEDDINGS_FILE

METRICS = ("recall@5", "recall@10", "mrr")


async def ranked(folder: Path, cache: Path, chroma: str, postgres: str) -> Mapping[str, Mapping[str, float]]:
    """Means over a set's queries by index and metric, of `hybrid` ungated; `same_selection` is the share of the tools
    that a turn is given by this index or the exact one and by both."""
    dataset = read_set(folder)
    canonical = ranking_metrics.canonical_ids(dataset.catalog)
    goals = [ranking_metrics.goals(query.relevant, query.any_of, canonical) for query in dataset.queries]
    encoder = CachedEncoder(OnnxEncoder(threads=1), SqliteEmbeddings(cache / EMBEDDINGS_FILE))
    found: dict[str, dict[str, float]] = {}
    given: dict[str, list[frozenset[object]]] = {}
    for index in ("exact", "faiss", "chroma", "pgvector"):
        settings = load_settings(
            cache_dir=cache,
            index=index,
            chroma={"url": chroma, "timeout": 30},
            pgvector={"url": postgres, "timeout": 30},
        )
        parts = default_parts(settings, encoder=encoder, events=MemoryEvents())
        board = build_routing(settings, dataset.catalog, parts=parts, name=folder.name)
        await board.warm()
        rows, given[index] = [], []
        for query, wanted in zip(dataset.queries, goals, strict=True):
            scores = await board.scores(query.text)
            rows.append(
                ranking_metrics.score(wanted, best(dataset.catalog, scores.values) if scores else [], canonical)
            )
            given[index].append(frozenset((await board.route(query.text)).active))
        await parts.close()
        found[index] = {metric: float(np.mean([row[metric] for row in rows])) for metric in METRICS}
        shares = [len(a & b) / max(1, len(a | b)) for a, b in zip(given["exact"], given[index], strict=True)]
        found[index]["same_selection"] = float(np.mean(shares))
    return found
