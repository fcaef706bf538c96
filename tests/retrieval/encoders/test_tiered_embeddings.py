from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pegboard.model import Floats
from pegboard.retrieval.encoders.embedding_caches import TieredEmbeddings
from pegboard.stores import MemoryEmbeddings


class Watched(MemoryEmbeddings):
    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def get(self, keys: Sequence[str]) -> Mapping[str, Floats]:
        self.asked.extend(keys)
        return await super().get(keys)


def vector(value: float) -> Floats:
    return np.array([value], np.float32)


async def test_the_far_store_is_asked_once_for_what_the_near_one_lacks() -> None:
    near, far = Watched(), Watched()
    await near.put({"a": vector(1)})
    await far.put({"b": vector(2)})
    tiered = TieredEmbeddings(near, far)

    found = [dict(await tiered.get(["a", "b"])) for _ in range(2)]

    assert found[0] == found[1] == {"a": vector(1), "b": vector(2)}
    assert far.asked == ["b"]


async def test_what_neither_store_has_is_missing() -> None:
    assert await TieredEmbeddings(MemoryEmbeddings(), MemoryEmbeddings()).get(["a"]) == {}


async def test_what_is_put_lasts() -> None:
    near, far = MemoryEmbeddings(), MemoryEmbeddings()

    await TieredEmbeddings(near, far).put({"a": vector(1)})

    assert await near.get(["a"]) == await far.get(["a"]) == {"a": vector(1)}
