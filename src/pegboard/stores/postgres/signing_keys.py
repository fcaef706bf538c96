"""The secrets of the servers, in PostgreSQL: a row each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pegboard.model import SigningKey
from pegboard.stores.postgres.database import PostgresDatabase, execute_each, fetch
from pegboard.stores.signing_keys import in_order, key_of

ADD = "INSERT INTO signing_keys (id, made, secret) VALUES (%s, %s, %s) ON CONFLICT (id) DO NOTHING"
FORGET = "DELETE FROM signing_keys WHERE id IN (SELECT id FROM signing_keys WHERE made < %s FOR UPDATE SKIP LOCKED)"
KEPT = "SELECT id, made, secret FROM signing_keys WHERE made >= %s"


class PostgresSigningKeys:
    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def share(self, keys: Sequence[SigningKey], *, forget: float) -> Sequence[SigningKey]:
        rows = [(key.id, key.made, key.secret.hex()) for key in keys]

        async def write(connection: Any) -> list[tuple[Any, ...]]:
            if rows:
                await execute_each(connection, ADD, rows)
            await connection.execute(FORGET, (forget,))
            return await fetch(connection, KEPT, (forget,))

        return in_order(key_of(*row) for row in await self._database.run(write))
