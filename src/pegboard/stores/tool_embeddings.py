"""Vectors of the tools that many APIs send along: the least recently used go first, of APIs and of each one's tools."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence

import numpy as np

from pegboard.model import Floats
from pegboard.seams import Embeddings


class ToolEmbeddings:
    """At most ``tools`` vectors for each of the last ``apis`` that were used. What an API is, whoever asks decides."""

    def __init__(self, *, apis: int = 64, tools: int = 2048) -> None:
        self._apis = apis
        self._tools = tools
        self._shelves: OrderedDict[str, _Shelf] = OrderedDict()

    def of(self, api: str) -> Embeddings:
        """The vectors of one API: they are back, empty, where it was forgotten in the meantime."""
        return _OfApi(self, api)

    def shelf(self, api: str) -> _Shelf:
        """The API's, as the one that was used last; the one that was used longest ago may go for it."""
        shelf = self._shelves.setdefault(api, _Shelf(self._tools))
        self._shelves.move_to_end(api)
        while len(self._shelves) > self._apis:
            self._shelves.popitem(last=False)
        return shelf

    def __len__(self) -> int:
        return sum(len(shelf) for shelf in self._shelves.values())


class _OfApi:
    def __init__(self, whole: ToolEmbeddings, api: str) -> None:
        self._whole = whole
        self._api = api

    async def get(self, keys: Sequence[str]) -> Mapping[str, Floats]:
        return self._whole.shelf(self._api).get(keys)

    async def put(self, vectors: Mapping[str, Floats]) -> None:
        self._whole.shelf(self._api).put(vectors)


class _Shelf:
    """A batch takes the place of what has not been used since the batch before it; what then does not fit is skipped.

    So a batch that is too large, or used once, costs no vector that is in use, and of more tools than fit always the
    same are kept.
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
                self._vectors[key] = np.array(vectors[key], np.float32)  # a row would keep its whole batch in memory
                self._vectors.move_to_end(key)
        self._just_used = stored

    def __len__(self) -> int:
        return len(self._vectors)
