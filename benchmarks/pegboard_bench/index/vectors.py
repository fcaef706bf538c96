"""The vectors that indexes are measured with: of real tools, and more of them synthesised."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pegboard.evaluation.datasets import read_set
from pegboard.evaluation.progress_bar import bar
from pegboard.model import Floats, ToolId
from pegboard.retrieval import CachedEncoder, OnnxEncoder, Retriever
from pegboard.stores import SqliteEmbeddings
from pegboard.stores.sqlite.backend import EMBEDDINGS_FILE

NOISE = 0.8
"""Length of what a synthesised vector is off its model by; its cosine with it is 0.78 then, as of two related tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vectors:
    """Of tools, shape (n, d), and of requests, shape (m, d)."""

    ids: list[ToolId]
    rows: Floats
    queries: Floats


async def real(folder: Path, cache: Path, most_queries: int) -> Vectors:
    """Those of a set's tools and requests, as `hybrid` compares them."""
    found = read_set(folder)
    encoder = CachedEncoder(OnnxEncoder(threads=1), SqliteEmbeddings(cache / EMBEDDINGS_FILE))
    retriever = Retriever(found.catalog.tools, found.catalog.servers, documents=encoder, queries=encoder)
    with bar("embedding tools") as progress:
        rows = (await retriever.meanings(progress)).vectors
    step = max(1, len(found.queries) // most_queries)
    queries = await encoder.encode([query.text for query in found.queries[::step]][:most_queries])
    return Vectors(ids=[tool.id for tool in found.catalog.tools], rows=rows, queries=queries)


def synthesised(models: Vectors, size: int, seed: int) -> Vectors:
    """As many as ``size``: the real ones, then copies of them, each moved off its model in a direction of its own."""
    draw = np.random.default_rng(seed)
    more = size - len(models.rows)
    model = np.arange(more) % len(models.rows)
    moved = draw.standard_normal((more, models.rows.shape[1]), np.float32)
    moved *= NOISE / np.linalg.norm(moved, axis=1, keepdims=True)
    moved += models.rows[model]
    moved /= np.linalg.norm(moved, axis=1, keepdims=True)
    copies = [
        ToolId(f"{models.ids[place].server} {1 + number // len(models.rows)}", models.ids[place].name)
        for number, place in enumerate(model.tolist())
    ]
    return Vectors(
        ids=[*models.ids, *copies], rows=np.concatenate([models.rows, moved], dtype=np.float32), queries=models.queries
    )
