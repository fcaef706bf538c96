"""Embeddings and tool definitions, kept as long as the process lives."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence

from pegboard.model import Floats
from pegboard.protocols import Listing


class MemoryEmbeddings:
    """The ``capacity`` most recently used vectors."""

    def __init__(self, capacity: int = 16384) -> None:
        self._capacity = capacity
        self._vectors: OrderedDict[str, Floats] = OrderedDict()

    async def get(self, keys: Sequence[str]) -> Mapping[str, Floats]:
        found = {key: self._vectors[key] for key in keys if key in self._vectors}
        for key in found:
            self._vectors.move_to_end(key)
        return found

    async def put(self, vectors: Mapping[str, Floats]) -> None:
        for key, vector in vectors.items():
            self._vectors[key] = vector
            self._vectors.move_to_end(key)
        while len(self._vectors) > self._capacity:
            self._vectors.popitem(last=False)


class MemoryDefinitions:
    """The latest listing of each server."""

    def __init__(self) -> None:
        self._listings: dict[str, Listing] = {}

    async def get(self, key: str) -> Listing | None:
        return self._listings.get(key)

    async def put(self, key: str, listing: Listing) -> None:
        self._listings[key] = listing
