"""Finds the nearest tools of one catalog by a vector index, without scoring all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pegboard.model import Floats, Mask, Tool
from pegboard.protocols import Filter, VectorIndex
from pegboard.retrieval.index.exact import best_places

Progress = Callable[[int, int], None]
"""Called with (done, total) while tools are embedded and put into the index."""
CANDIDATES = 50
"""Candidates per query vector, and as many again by words; of 9,812 tools, 100 candidates find nothing more."""
SAMPLE = 2048
"""Number of tools, spread evenly over the catalog, that represent the unscored ones."""
BATCH = 1000
"""Vectors added to the index at a time, so that it answers searches in between."""
Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """Candidates for a query and a sample of all tools, as ascending places in the catalog, each with its cosines with
    the query's vectors, shape (vectors, places)."""

    places: Places
    cosines: Floats
    sample: Places
    sample_cosines: Floats


class Nearest:
    """One catalog's tools in an index that may hold other catalogs' tools too, and may lose data."""

    def __init__(self, index: VectorIndex, tools: Sequence[Tool]) -> None:
        self._index = index
        self._ids = [tool.id for tool in tools]
        self._place = {tool: place for place, tool in enumerate(self._ids)}
        self._servers = frozenset(tool.server for tool in self._ids)
        self._shared = False
        self.has_failed = False
        self._sample = np.unique(np.linspace(0, max(0, len(tools) - 1), min(len(tools), SAMPLE)).astype(np.intp))
        self._sample_vectors: Floats | None = None
        self._filter = lru_cache(maxsize=16)(self._filter_of)

    @property
    def is_filled(self) -> bool:
        return self._sample_vectors is not None and not self.has_failed

    def fail(self) -> None:
        """Record a failure: the index may have lost its data."""
        self.has_failed = True

    async def check(self) -> None:
        """Remove tools that servers of this catalog no longer list; tools of other servers stay. Raises StoreError.

        If the index failed but still has all tools, it counts as filled again.
        """
        there = await self._index.ids()
        gone = [tool for tool in there if tool.server in self._servers and tool not in self._place]
        await self._index.remove(gone)
        self._shared = any(tool.server not in self._servers for tool in there)
        if self._sample_vectors is not None and self._place.keys() <= there:
            self.has_failed = False

    async def fill(self, vectors: Floats, progress: Progress | None = None) -> None:
        """Add one vector per tool, shape (n, d), in catalog order. Raises StoreError; vectors added by then stay."""
        for start in range(0, len(vectors), BATCH):
            some = slice(start, start + BATCH)
            await self._index.add(self._ids[some], vectors[some])
            if progress is not None:
                progress(min(start + BATCH, len(vectors)), len(vectors))
        self._sample_vectors = vectors[self._sample]
        self.has_failed = False

    async def find(self, queries: Floats, points: Floats, among: Mask | None) -> Near:
        """The nearest tools to each query, shape (m, d), and the best by ``points``, shape (n,), within ``among``.

        Identical queries are searched once. Raises StoreError.
        """
        if self._sample_vectors is None:
            raise ValueError("The index was not filled")
        where = self._filter(None if among is None or among.all() else among.tobytes())
        whole, queries = queries, queries[:1] if (queries == queries[0]).all() else queries
        hits = await self._index.search(queries, CANDIDATES, where)
        found = [{self._place[tool]: score for tool, score in row if tool in self._place} for row in hits]
        places = np.array(sorted({*_best(points, among), *(place for row in found for place in row)}), np.intp)
        sampled = np.asarray(queries @ self._sample_vectors.T)
        await self._complete(queries, places, found)
        cosines = [
            [row.get(place, average) for place in places.tolist()]  # the average if the index has lost a tool
            for row, average in zip(found, sampled.mean(axis=1).tolist(), strict=True)
        ]
        return Near(
            places=places,
            cosines=np.resize(np.array(cosines, np.float32), (len(whole), len(places))),
            sample=self._sample,
            sample_cosines=np.resize(sampled, (len(whole), len(self._sample))),
        )

    async def _complete(self, queries: Floats, places: Places, found: Sequence[dict[int, float]]) -> None:
        """Look up the missing cosines of queries and places."""
        missing = [place for place in places.tolist() if any(place not in row for row in found)]
        if missing:
            only = frozenset(self._ids[place] for place in missing)
            rest = await self._index.search(queries, len(missing), Filter(only=only))
            for row, hits in zip(found, rest, strict=True):
                row.update((self._place[tool], score) for tool, score in hits)

    def _filter_of(self, among: bytes | None) -> Filter | None:
        """The shortest filter that is equivalent to the mask."""
        if among is None:
            return Filter(servers=self._servers) if self._shared else None
        allowed = np.frombuffer(among, np.bool_)
        servers = frozenset(tool.server for tool, may in zip(self._ids, allowed, strict=True) if may)
        return Filter(
            servers=None if servers == self._servers and not self._shared else servers,
            excluded=frozenset(
                tool for tool, may in zip(self._ids, allowed, strict=True) if not may and tool.server in servers
            ),
        )


def _best(points: Floats, among: Mask | None) -> list[int]:
    """The places with the most points, of those with any; ties in order."""
    eligible = points if among is None else np.where(among, points, 0)
    return [place for place in best_places(eligible, CANDIDATES).tolist() if eligible[place] > 0]
