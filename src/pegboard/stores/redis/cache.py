"""Embeddings on Redis: one key a vector, float32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pegboard.model import Floats
from pegboard.records import EmbeddingRecord, Key
from pegboard.stores.database import batches
from pegboard.stores.redis.database import RedisServer
from pegboard.stores.redis.record_stores import RecordStore, scanned

TTL = 90 * 86_400.0


class RedisEmbeddings:
    """Vectors, each for ``ttl`` seconds after its last use, or without end."""

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


class EmbeddingRecords(RecordStore[EmbeddingRecord]):
    def __init__(self, *given: Any, ttl: float | None) -> None:
        super().__init__(*given)
        self._keep = None if ttl is None else max(1, int(ttl * 1000))

    async def names(self, client: Any) -> list[Key]:
        return [(name,) for name in await scanned(client, self.server, "embedding")]

    async def read(self, client: Any, keys: Sequence[Key]) -> list[EmbeddingRecord]:
        vectors = await client.mget([key_of_embedding(self.server, key) for (key,) in keys])
        found = zip(keys, vectors, strict=True)
        return [EmbeddingRecord(key=key, vector=vector) for (key,), vector in found if vector is not None]

    async def add(self, records: Sequence[EmbeddingRecord]) -> int:
        async with self.server.client() as client:
            commands = client.pipeline(transaction=False)
            for each in records:
                commands.set(key_of_embedding(self.server, each.key), each.vector, px=self._keep, nx=True)
            return sum(map(bool, await commands.execute()))

    async def remove(self, client: Any, keys: Sequence[Key]) -> int:
        return int(await client.delete(*(key_of_embedding(self.server, key) for (key,) in keys)))


def key_of_embedding(server: RedisServer, key: str) -> str:
    return server.key("embedding", key)
