"""Embeddings in PostgreSQL: a row a vector, float32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pegboard.model import Floats
from pegboard.stores.postgres.database import PostgresDatabase, execute_each, fetch

GET = "SELECT key, vector FROM embeddings WHERE key = ANY(%s)"
PUT = "INSERT INTO embeddings VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET vector = excluded.vector"


class PostgresEmbeddings:
    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def get(self, keys: Sequence[str]) -> Mapping[str, Floats]:
        rows = await self._database.run(lambda connection: fetch(connection, GET, (list(keys),)))
        return {key: np.frombuffer(vector, np.float32) for key, vector in rows}

    async def put(self, vectors: Mapping[str, Floats]) -> None:
        """In one order by everybody: nobody waits for somebody who waits for him."""
        rows = [(key, np.asarray(vectors[key], np.float32).tobytes()) for key in sorted(vectors)]
        await self._database.run(lambda connection: execute_each(connection, PUT, rows))
