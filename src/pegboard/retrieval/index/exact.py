"""Exact search by one matrix product: the default, and the reference for approximate indexes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from pegboard.model import Floats, ToolId
from pegboard.protocols import Filter, Hits


class ExactIndex:
    """Vectors in the order added; the inner product of rows of length 1 is the cosine (Tool Attention eq. 5).

    Synchronous; `ExactVectors` is the same as a VectorIndex.
    """

    def __init__(self, dimensions: int) -> None:
        self._ids: tuple[ToolId, ...] = ()
        self._vectors: Floats = np.zeros((0, dimensions), np.float32)

    @classmethod
    def of(cls, ids: Iterable[ToolId], vectors: Floats) -> ExactIndex:
        """An index of these vectors, shape (n, d), which are not copied; no id occurs twice."""
        index = cls(vectors.shape[1])
        index._ids = tuple(ids)
        index._vectors = np.ascontiguousarray(vectors, np.float32)
        return index

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def vectors(self) -> Floats:
        """All vectors, shape (n, d), in the order added."""
        return self._vectors

    @property
    def tools(self) -> tuple[ToolId, ...]:
        """The tools, in the order added."""
        return self._ids

    def add(self, ids: Sequence[ToolId], vectors: Floats) -> None:
        latest = {tool: row for row, tool in enumerate(ids)}
        self.remove(list(latest))
        self._ids += tuple(latest)
        self._vectors = np.ascontiguousarray(
            np.concatenate([self._vectors, vectors[list(latest.values())]]), np.float32
        )

    def remove(self, ids: Sequence[ToolId]) -> None:
        gone = set(ids)
        kept = [place for place, tool in enumerate(self._ids) if tool not in gone]
        if len(kept) < len(self._ids):
            self._vectors = self._vectors[kept]
            self._ids = tuple(self._ids[place] for place in kept)

    def similarities(self, query: Floats) -> Floats:
        """Cosines of one query, shape (d,), with every vector: shape (n,), in the order added.

        For m queries, shape (m, d): shape (m, n).
        """
        return np.asarray(query @ self._vectors.T)

    def search(self, queries: Floats, k: int, where: Filter | None = None) -> list[Hits]:
        """For each query the k best that pass ``where``, ties in the order added."""
        ids = self._ids
        rows = np.asarray(queries @ self._vectors.T)
        if where is None:
            return [[(ids[place], float(row[place])) for place in best_places(row, k)] for row in rows]
        allowed = np.flatnonzero([where.passes(tool) for tool in ids])
        return [[(ids[allowed[place]], float(row[place])) for place in best_places(row, k)] for row in rows[:, allowed]]


def best_places(values: Floats, k: int) -> NDArray[np.intp]:
    """The places of the k largest values, the largest first, ties in order.

    >>> best_places(np.array([1.0, 3.0, 2.0, 3.0], np.float32), 3).tolist()
    [1, 3, 2]
    """
    if 0 < k < len(values):
        least = np.partition(values, len(values) - k)[len(values) - k]
        among = np.flatnonzero(values >= least)
    else:
        among = np.arange(len(values))
    return among[np.argsort(-values[among], kind="stable")][: max(0, k)]


class ExactVectors:
    """`ExactIndex` as a VectorIndex."""

    def __init__(self, dimensions: int) -> None:
        self._index = ExactIndex(dimensions)

    async def add(self, ids: Sequence[ToolId], vectors: Floats) -> None:
        self._index.add(ids, vectors)

    async def remove(self, ids: Sequence[ToolId]) -> None:
        self._index.remove(ids)

    async def ids(self) -> frozenset[ToolId]:
        return frozenset(self._index.tools)

    async def search(self, queries: Floats, k: int, where: Filter | None = None) -> list[Hits]:
        return self._index.search(queries, k, where)
