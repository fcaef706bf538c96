"""Embeddings in PostgreSQL: one row a vector, float32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pegboard.clock import SYSTEM_CLOCK
from pegboard.model import Floats
from pegboard.protocols import Clock
from pegboard.stores.postgres.database import PostgresDatabase, execute_each, fetch
from pegboard.stores.retention import MARKED

GET = "SELECT key, vector, used FROM embeddings WHERE key = ANY(%s)"
MARK = (
    "UPDATE embeddings SET used = %s WHERE key IN "
    "(SELECT key FROM embeddings WHERE key = ANY(%s) FOR UPDATE SKIP LOCKED)"
)
PUT = (
    "INSERT INTO embeddings (key, vector, used) VALUES (%s, %s, %s) "
    "ON CONFLICT (key) DO UPDATE SET vector = excluded.vector, used = excluded.used"
)


class PostgresEmbeddings:
    def __init__(self, database: PostgresDatabase, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._database = database
        self._clock = clock

    async def get(self, keys: Sequence[str]) -> Mapping[str, Floats]:
        now = self._clock.time()

        async def read(connection: Any) -> list[tuple[Any, ...]]:
            rows = await fetch(connection, GET, (list(keys),))
            unmarked = [key for key, _, used in rows if used <= now - MARKED]
            if unmarked:
                await connection.execute(MARK, (now, unmarked))
            return rows

        return {key: np.frombuffer(vector, np.float32) for key, vector, _ in await self._database.run(read)}

    async def put(self, vectors: Mapping[str, Floats]) -> None:
        """Rows are written in a fixed order, so that two writers cannot deadlock."""
        now = self._clock.time()
        rows = [(key, np.asarray(vectors[key], np.float32).tobytes(), now) for key in sorted(vectors)]
        await self._database.run(lambda connection: execute_each(connection, PUT, rows))
