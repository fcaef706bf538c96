"""Caches of embeddings: a fast store before a lasting one, and bounded vectors of the tools of many APIs."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence

import numpy as np

from pegboard.errors import PegboardError, StoreError
from pegboard.model import Floats
from pegboard.protocols import Embeddings

LOGGER = logging.getLogger(__name__)


class TieredEmbeddings:
    """Reads the near store first and copies vectors of the far one into it; writes to both.

    Failures of the far store are ignored, since it only saves work. A failing file is reported here once; a store on
    the network reports its own failures.
    """

    def __init__(self, near: Embeddings, far: Embeddings) -> None:
        self._near = near
        self._far = far
        self._warned = False

    async def get(self, keys: Sequence[str]) -> Mapping[str, Floats]:
        found = dict(await self._near.get(keys))
        missing = [key for key in keys if key not in found]
        if missing:
            from_far = await self._from_far(missing)
            await self._near.put(from_far)
            found |= from_far
        return found

    async def put(self, vectors: Mapping[str, Floats]) -> None:
        await self._near.put(vectors)
        try:
            await self._far.put(vectors)
        except PegboardError as error:
            self._warn(error)

    async def _from_far(self, keys: Sequence[str]) -> Mapping[str, Floats]:
        try:
            return await self._far.get(keys)
        except PegboardError as error:
            self._warn(error)
            return {}

    def _warn(self, error: PegboardError) -> None:
        if not self._warned and not isinstance(error, StoreError):
            LOGGER.warning("%s", error)
            self._warned = True


class ToolEmbeddings:
    """At most ``tools`` vectors for each of the ``apis`` most recently used APIs. The caller decides what an API is."""

    def __init__(self, *, apis: int = 64, tools: int = 2048) -> None:
        self._apis = apis
        self._tools = tools
        self._shelves: OrderedDict[str, _ApiVectors] = OrderedDict()

    def of(self, api: str) -> Embeddings:
        """The vectors of one API; empty again if it was evicted in the meantime."""
        return _ApiEmbeddings(self, api)

    def shelf(self, api: str) -> _ApiVectors:
        """The vectors of an API, marked as used; may evict the least recently used API."""
        shelf = self._shelves.setdefault(api, _ApiVectors(self._tools))
        self._shelves.move_to_end(api)
        while len(self._shelves) > self._apis:
            self._shelves.popitem(last=False)
        return shelf

    def __len__(self) -> int:
        return sum(len(shelf) for shelf in self._shelves.values())


class _ApiEmbeddings:
    def __init__(self, whole: ToolEmbeddings, api: str) -> None:
        self._whole = whole
        self._api = api

    async def get(self, keys: Sequence[str]) -> Mapping[str, Floats]:
        return self._whole.shelf(self._api).get(keys)

    async def put(self, vectors: Mapping[str, Floats]) -> None:
        self._whole.shelf(self._api).put(vectors)


class _ApiVectors:
    """A batch replaces vectors not used since the batch before it; vectors that then do not fit are skipped.

    So a batch that is too large or used only once evicts no vector in use, and if not all tools fit, always the same
    ones are kept.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._vectors: OrderedDict[str, Floats] = OrderedDict()
        self._just_used: set[str] = set()

    def get(self, keys: Sequence[str]) -> Mapping[str, Floats]:
        found = {key: self._vectors[key] for key in keys if key in self._vectors}
        for key in found:
            self._vectors.move_to_end(key)
        self._just_used |= found.keys()
        return found

    def put(self, vectors: Mapping[str, Floats]) -> None:
        used = self._just_used | (vectors.keys() & self._vectors.keys())
        new = [key for key in vectors if key not in self._vectors]
        unused = [key for key in self._vectors if key not in used]
        free = self._capacity - len(self._vectors)
        stored = set(new[: free + len(unused)])
        for key in unused[: max(0, len(stored) - free)]:
            del self._vectors[key]
        for key in vectors:
            if key in self._vectors or key in stored:
                self._vectors[key] = np.array(vectors[key], np.float32)  # a view would keep its whole batch in memory
                self._vectors.move_to_end(key)
        self._just_used = stored

    def __len__(self) -> int:
        return len(self._vectors)
