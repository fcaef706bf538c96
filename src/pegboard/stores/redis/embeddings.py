"""Embeddings on Redis: a key a vector, float32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pegboard.model import Floats
from pegboard.stores.batches import batches
from pegboard.stores.redis.server import RedisServer

TTL = 90 * 86_400.0


class RedisEmbeddings:
    """Each for ``ttl`` seconds after its last use, or for ever."""

    def __init__(self, server: RedisServer, *, ttl: float | None = TTL) -> None:
        self._server = server
        self._keep = None if ttl is None else max(1, int(ttl * 1000))

    async def get(self, keys: Sequence[str]) -> Mapping[str, Floats]:
        found: dict[str, Floats] = {}
        async with self._server.client() as client:
            for some in batches(dict.fromkeys(keys)):
                commands = client.pipeline(transaction=False)
                commands.mget([self._key(key) for key in some])
                for key in some if self._keep else ():
                    commands.pexpire(self._key(key), self._keep)
                values = (await commands.execute())[0]
                there = ((key, value) for key, value in zip(some, values, strict=True) if value is not None)
                found |= {key: np.frombuffer(value, np.float32) for key, value in there}
        return found

    async def put(self, vectors: Mapping[str, Floats]) -> None:
        async with self._server.client() as client:
            for some in batches(vectors):
                commands = client.pipeline(transaction=False)
                for key in some:
                    blob = np.asarray(vectors[key], np.float32).tobytes()
                    commands.set(self._key(key), blob, px=self._keep)
                await commands.execute()

    def _key(self, key: str) -> str:
        return key_of_embedding(self._server, key)


def key_of_embedding(server: RedisServer, key: str) -> str:
    return server.key("embedding", key)
