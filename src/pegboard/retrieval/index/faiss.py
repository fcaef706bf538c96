"""FAISS in this process: exact for few vectors, inverted lists (IVF) for many.

IVF rather than HNSW: it is built in a fraction of the time, vectors can be removed, and filters cost nothing, because
lists are scanned anyway. HNSW answers faster (`make bench-index` measures both).
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pegboard.extras import required
from pegboard.model import Floats, Mask, ToolId
from pegboard.protocols import Filter, Hits

APPROXIMATE_ABOVE = 20_000
"""Maximum vectors searched exactly: up to here that takes no longer than the rest of routing."""
LISTS = 2.0
"""Lists per √n vectors."""
PROBES = 48
"""Lists searched at first; doubled until enough results are found."""
TRAINING = 32
"""Training vectors per list."""
ROUNDS = 10
GROWTH = 2.0
"""The lists are trained again when the number of vectors grows or shrinks by this factor."""

Rows = NDArray[np.int64]
T = TypeVar("T")


class FaissIndex:
    """Row numbers are never reused, so that a later row is a later vector.

    Without ``dimensions``, the first vector sets the width: an encoder may not know it before its first answer.
    """

    def __init__(
        self, dimensions: int = 0, *, approximate_above: int = APPROXIMATE_ABOVE, probes: int = PROBES
    ) -> None:
        self._faiss = required("faiss", "faiss")
        self._dimensions = dimensions
        self._approximate_above = approximate_above
        self._probes = probes
        self._row: dict[ToolId, int] = {}
        self._tools: list[ToolId] = []
        self._there: Mask = np.zeros(0, np.bool_)
        self._server_of: Rows = np.zeros(0, np.int64)
        self._servers: dict[str, int] = {}
        self._learnt_from = 0
        self._index = self._lists(np.zeros((1, dimensions), np.float32))
        self._lock = threading.Lock()

    @property
    def lists(self) -> int:
        """The number of lists; with one, every search is exact."""
        return int(self._index.nlist)

    async def add(self, ids: Sequence[ToolId], vectors: Floats) -> None:
        await self._alone(lambda: self._add(ids, vectors))

    async def remove(self, ids: Sequence[ToolId]) -> None:
        await self._alone(lambda: self._remove(ids))

    async def ids(self) -> frozenset[ToolId]:
        return frozenset(self._row)

    async def search(self, queries: Floats, k: int, where: Filter | None = None) -> list[Hits]:
        return await self._alone(lambda: self._search(np.ascontiguousarray(queries, np.float32), k, where))

    async def _alone(self, work: Callable[[], T]) -> T:
        """Run on a thread, one at a time: FAISS must not be read while it changes."""

        def locked() -> T:
            with self._lock:
                return work()

        return await asyncio.to_thread(locked)

    def _add(self, ids: Sequence[ToolId], vectors: Floats) -> None:
        latest = {tool: place for place, tool in enumerate(ids)}
        new = [tool for tool, place in latest.items() if not self._has(tool, vectors[place])]
        if not new:
            return
        self._remove(new)
        if not self._dimensions:
            self._dimensions = vectors.shape[1]
            self._index = self._lists(np.zeros((1, self._dimensions), np.float32))
        rows = np.arange(len(self._tools), len(self._tools) + len(new))
        self._index.add_with_ids(np.ascontiguousarray(vectors[[latest[tool] for tool in new]], np.float32), rows)
        self._tools.extend(new)
        self._row |= dict(zip(new, rows.tolist(), strict=True))
        self._there = np.append(self._there, np.ones(len(new), np.bool_))
        numbers = [self._servers.setdefault(tool.server, len(self._servers)) for tool in new]
        self._server_of = np.append(self._server_of, numbers)
        self._learn()

    def _remove(self, ids: Sequence[ToolId]) -> None:
        rows = [self._row.pop(tool) for tool in dict.fromkeys(ids) if tool in self._row]
        self._there[rows] = False
        self._index.remove_ids(np.array(rows, np.int64))

    def _has(self, tool: ToolId, vector: Floats) -> bool:
        row = self._row.get(tool)
        return row is not None and np.array_equal(self._index.reconstruct(row), vector)

    def _learn(self) -> None:
        """Train new lists if there are too many or too few vectors for the current ones."""
        count = len(self._row)
        if count <= self._approximate_above:
            return
        if self._learnt_from / GROWTH <= count <= self._learnt_from * GROWTH:
            return
        rows = np.fromiter(self._row.values(), np.int64, count)
        vectors = self._index.reconstruct_batch(rows)
        trained = self._faiss.Kmeans(
            self._dimensions,
            round(LISTS * math.sqrt(count)),
            niter=ROUNDS,
            spherical=True,
            max_points_per_centroid=TRAINING,
            min_points_per_centroid=1,
        )
        trained.train(vectors)
        self._index = self._lists(trained.centroids)
        self._index.add_with_ids(vectors, rows)
        self._learnt_from = count

    def _lists(self, centroids: Floats) -> Any:
        """An index with one list per centroid."""
        nearest = self._faiss.IndexFlatIP(self._dimensions)
        nearest.add(centroids)
        index = self._faiss.IndexIVFFlat(nearest, self._dimensions, len(centroids), self._faiss.METRIC_INNER_PRODUCT)
        index.own_fields = False
        index.referenced_objects = [nearest]
        index.is_trained = True
        index.set_direct_map_type(self._faiss.DirectMap.Hashtable)
        return index

    def _search(self, queries: Floats, k: int, where: Filter | None) -> list[Hits]:
        mask = self._mask(where)
        count = int(mask.sum())
        if min(count, k, len(queries)) < 1:
            return [[] for _ in queries]
        everywhere = self.lists
        probes = everywhere if count <= self._approximate_above else min(self._probes, everywhere)
        wanted = min(k + 1, count)
        while True:
            scores, rows = self._nearest(queries, wanted, mask, probes)
            if probes < everywhere and (rows[:, min(k, wanted) - 1] < 0).any():
                probes = min(2 * probes, everywhere)
            elif wanted < count and (scores[:, k - 1] == scores[:, -1]).any():
                wanted = min(2 * wanted, count)
            else:
                return [self._hits(*each, k) for each in zip(scores, rows, strict=True)]

    def _nearest(self, queries: Floats, wanted: int, mask: Mask, probes: int) -> tuple[Floats, Rows]:
        bits = np.packbits(mask, bitorder="little")
        selector = self._faiss.IDSelectorBitmap(bits)
        scores, rows = self._index.search(
            queries, wanted, params=self._faiss.SearchParametersIVF(sel=selector, nprobe=probes)
        )
        return scores, rows

    def _hits(self, scores: Floats, rows: Rows, k: int) -> Hits:
        """The best k, ties in the order added."""
        order = np.lexsort((rows, -scores))
        return [(self._tools[rows[place]], float(scores[place])) for place in order[:k] if rows[place] >= 0]

    def _mask(self, where: Filter | None) -> Mask:
        """The rows that pass the filter."""
        if where is None:
            return self._there
        mask = self._there.copy()
        if where.servers is not None:
            allowed = np.array([server in where.servers for server in self._servers], np.bool_)
            mask &= allowed[self._server_of]
        if where.only is not None:
            mask &= np.isin(np.arange(len(mask)), self._rows(where.only))
        mask[self._rows(where.excluded)] = False
        return mask

    def _rows(self, tools: Iterable[ToolId]) -> list[int]:
        return [self._row[tool] for tool in tools if tool in self._row]
