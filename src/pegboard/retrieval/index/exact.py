"""Exact search: one matrix, one product. The default, and the oracle for approximate indexes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pegboard.model import Floats, ToolId
from pegboard.seams import Filter


class ExactIndex:
    """Vectors in the order they were added; inner product on rows of length 1 is the cosine (seed 000 eq. 5)."""

    def __init__(self, dimensions: int) -> None:
        self._ids: dict[ToolId, int] = {}
        self._vectors: Floats = np.zeros((0, dimensions), np.float32)

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def vectors(self) -> Floats:
        """All vectors, shape (n, d), in the order they were added."""
        return self._vectors

    def add(self, ids: Sequence[ToolId], vectors: Floats) -> None:
        latest = {tool: row for row, tool in enumerate(ids)}
        self.remove([tool for tool in latest if tool in self._ids])
        start = len(self._ids)
        self._ids |= {tool: start + offset for offset, tool in enumerate(latest)}
        self._vectors = np.ascontiguousarray(
            np.concatenate([self._vectors, vectors[list(latest.values())]]), np.float32
        )

    def remove(self, ids: Sequence[ToolId]) -> None:
        gone = set(ids)
        kept = [tool for tool in self._ids if tool not in gone]
        self._vectors = self._vectors[[self._ids[tool] for tool in kept]]
        self._ids = {tool: place for place, tool in enumerate(kept)}

    def similarities(self, query: Floats) -> Floats:
        """Cosine of one query, shape (d,), with every vector: shape (n,), in the order they were added.

        Of m queries, shape (m, d), that of each with every vector: shape (m, n).
        """
        return np.asarray(query @ self._vectors.T)

    def search(self, queries: Floats, k: int, where: Filter | None = None) -> list[list[tuple[ToolId, float]]]:
        ids = list(self._ids)
        allowed = np.flatnonzero([where is None or where.passes(tool) for tool in ids])
        found = []
        for row in queries @ self._vectors[allowed].T if len(allowed) else np.zeros((len(queries), 0)):
            best = np.argsort(-row, kind="stable")[:k]
            found.append([(ids[allowed[place]], float(row[place])) for place in best])
        return found
