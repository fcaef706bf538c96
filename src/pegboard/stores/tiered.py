"""A fast store before a lasting one."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from pegboard.errors import PegboardError, StoreError
from pegboard.model import Floats
from pegboard.seams import Embeddings

LOGGER = logging.getLogger(__name__)


class TieredEmbeddings:
    """Reads the near store first and keeps there what the far one had; writes to both.

    A far store that fails is passed over: it only saves work. A file's failure is said here, once; a store on the
    network says so itself.
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
