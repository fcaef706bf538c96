"""Embeddings on Redis: a key a vector, float32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pegboard.model import Floats
from pegboard.stores.redis.server import RedisServer, batches

TTL = 30 * 86_400.0


class RedisEmbeddings:
    """Each for ``ttl`` seconds: what is used longer is embedded anew."""

    def __init__(self, server: RedisServer, *, ttl: float = TTL) -> None:
        self._server = server
        self._ttl = ttl

    async def get(self, keys: Sequence[str]) -> Mapping[str, Floats]:
        found: dict[str, Floats] = {}
        async with self._server.client() as client:
            for some in batches(list(dict.fromkeys(keys))):
                values = await client.mget([self._key(key) for key in some])
                there = ((key, value) for key, value in zip(some, values, strict=True) if value is not None)
                found |= {key: np.frombuffer(value, np.float32) for key, value in there}
        return found

    async def put(self, vectors: Mapping[str, Floats]) -> None:
        async with self._server.client() as client:
            for some in batches(list(vectors)):
                commands = client.pipeline(transaction=False)
                for key in some:
                    blob = np.asarray(vectors[key], np.float32).tobytes()
                    commands.set(self._key(key), blob, px=int(self._ttl * 1000))
                await commands.execute()

    def _key(self, key: str) -> str:
        return self._server.key("embedding", key)
