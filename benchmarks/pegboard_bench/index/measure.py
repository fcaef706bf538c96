"""One index over one set of vectors: what building it takes, and how fast and how completely it answers."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pegboard.extras import required
from pegboard.model import Floats, ToolId
from pegboard.protocols import Filter, Hits, VectorIndex
from pegboard.retrieval.index.chroma import ChromaIndex
from pegboard.retrieval.index.exact import ExactIndex, ExactVectors
from pegboard.retrieval.index.faiss import FaissIndex
from pegboard.retrieval.index.pgvector import PgvectorDatabase, PgvectorIndex
from pegboard.retrieval.index.qdrant import QdrantIndex
from pegboard_bench.index.postgres import postgres_server, required_programs
from pegboard_bench.index.server import chroma_server
from pegboard_bench.index.vectors import Vectors

K = 10
BATCH = 1000
TIMEOUT = 60.0
MEGABYTE = 1e6
PAGE = 4096
NEIGHBOURS, CONSTRUCTION, SEARCH = 16, 80, 64
"""Of the HNSW graph that is measured beside the lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Seconds, megabytes; by filter, milliseconds of each search and the share of the exact ten that it found."""

    build_s: float
    memory_mb: float
    ms: Mapping[str, Sequence[float]]
    recall: Mapping[str, float]


class Graph:
    """FAISS' HNSW as it is: for comparison, without filters and removing."""

    def __init__(self, dimensions: int) -> None:
        faiss = required("faiss", "faiss")
        self._ids: list[ToolId] = []
        self._index: Any = faiss.IndexHNSWFlat(dimensions, NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
        self._index.hnsw.efConstruction, self._index.hnsw.efSearch = CONSTRUCTION, SEARCH

    async def add(self, ids: Sequence[ToolId], vectors: Floats) -> None:
        self._ids.extend(ids)
        await asyncio.to_thread(self._index.add, np.ascontiguousarray(vectors))

    async def remove(self, ids: Sequence[ToolId]) -> None:
        raise NotImplementedError

    async def ids(self) -> frozenset[ToolId]:
        return frozenset(self._ids)

    async def search(self, queries: Floats, k: int, where: Filter | None = None) -> list[Hits]:
        scores, rows = await asyncio.to_thread(self._index.search, np.ascontiguousarray(queries), k)
        return [
            [(self._ids[row], float(score)) for row, score in zip(*each, strict=True) if row >= 0]
            for each in zip(rows.tolist(), scores.tolist(), strict=True)
        ]


def opened(backend: str, dimensions: int, url: str) -> VectorIndex:
    match backend:
        case "exact":
            return ExactVectors(dimensions)
        case "faiss":
            return FaissIndex(dimensions)
        case "faiss_hnsw":
            return Graph(dimensions)
        case "pgvector":
            return PgvectorIndex(PgvectorDatabase(url, timeout=TIMEOUT), [f"bench-{time.time_ns()}"])
        case "qdrant":
            local = required("qdrant_client", "qdrant").QdrantClient(":memory:")
            return QdrantIndex(local, "bench", timeout=TIMEOUT)
        case _:
            return ChromaIndex(url, f"bench-{time.time_ns()}", timeout=TIMEOUT)


def filters(ids: Sequence[ToolId]) -> dict[str, Filter | None]:
    """None, one that leaves every twentieth server, and one that takes two hundred tools away."""
    servers = list(dict.fromkeys(tool.server for tool in ids))
    step = max(1, len(ids) // 200)
    return {
        "any": None,
        "few_servers": Filter(servers=frozenset(servers[::20])),
        "some_excluded": Filter(excluded=frozenset(ids[::step][:200])),
    }


def measured_apart(backend: str, vectors: Vectors, chroma: Path) -> Measured:
    """In a process of its own, so that its memory is its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_measured, backend, vectors, chroma).result()


def _measured(backend: str, vectors: Vectors, chroma: Path) -> Measured:
    if backend == "pgvector":
        with postgres_server(required_programs()) as database:
            return asyncio.run(measure(backend, vectors, url=database.url, size=database.stored_bytes))
    if backend != "chroma":
        return asyncio.run(measure(backend, vectors))
    with tempfile.TemporaryDirectory(prefix="pegboard-bench-") as folder, chroma_server(chroma, Path(folder)) as server:
        return asyncio.run(measure(backend, vectors, url=server.url, pid=server.pid))


async def measure(
    backend: str, vectors: Vectors, *, url: str = "", pid: int | None = None, size: Callable[[], int] | None = None
) -> Measured:
    """``pid`` is the process whose memory counts, this one by default; or ``size`` says the bytes."""
    taken = size or partial(resident, pid)
    gc.collect()
    before = taken()
    index = opened(backend, vectors.rows.shape[1], url)
    started = time.perf_counter()
    batch = len(vectors.rows) if backend == "exact" else BATCH
    for start in range(0, len(vectors.rows), batch):
        await index.add(vectors.ids[start : start + batch], vectors.rows[start : start + batch])
    build = time.perf_counter() - started
    gc.collect()
    memory = taken() - before
    ms, recall = {}, {}
    for name, where in filters(vectors.ids).items():
        if name == "any" or backend != "faiss_hnsw":
            ms[name], recall[name] = await _searched(index, vectors, where)
    return Measured(build_s=build, memory_mb=memory / MEGABYTE, ms=ms, recall=recall)


async def _searched(index: VectorIndex, vectors: Vectors, where: Filter | None) -> tuple[list[float], float]:
    await index.search(vectors.queries[:1], K, where)
    times, found = [], []
    for query in vectors.queries:
        started = time.perf_counter()
        (hits,) = await index.search(query[None], K, where)
        times.append((time.perf_counter() - started) * 1000)
        found.append({tool for tool, _ in hits})
    oracle = ExactIndex(vectors.rows.shape[1])
    oracle.add(vectors.ids, vectors.rows)
    best = [{tool for tool, _ in hits} for hits in oracle.search(vectors.queries, K, where)]
    return times, float(np.mean([len(one & other) / len(other) for one, other in zip(found, best, strict=True)]))


def resident(pid: int | None) -> int:
    """Bytes of memory that a process has in use."""
    return int(Path(f"/proc/{pid or 'self'}/statm").read_text().split()[1]) * PAGE
