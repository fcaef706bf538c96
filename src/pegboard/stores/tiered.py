"""A fast store before a lasting one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pegboard.model import Floats
from pegboard.seams import Embeddings


class TieredEmbeddings:
    """Reads the near store first and keeps there what the far one had; writes to both."""

    def __init__(self, near: Embeddings, far: Embeddings) -> None:
        self._near = near
        self._far = far

    async def get(self, keys: Sequence[str]) -> Mapping[str, Floats]:
        found = dict(await self._near.get(keys))
        missing = [key for key in keys if key not in found]
        if missing:
            from_far = await self._far.get(missing)
            await self._near.put(from_far)
            found |= from_far
        return found

    async def put(self, vectors: Mapping[str, Floats]) -> None:
        await self._far.put(vectors)
        await self._near.put(vectors)
