"""How often each caller has called, in PostgreSQL: the rows of a call's meters are locked while it is counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pegboard.protocols import Clock
from pegboard.rate_limits import RateMeter, admission
from pegboard.stores.postgres.database import PostgresDatabase, execute_each, fetch
from pegboard.stores.sql.tables import SWEEP

BEGIN = "INSERT INTO rate_meters (key, arrival) VALUES (%s, 0) ON CONFLICT DO NOTHING"
LOCK = 'SELECT key, arrival FROM rate_meters WHERE key = ANY(%s) ORDER BY key COLLATE "C" FOR UPDATE'
SET = "UPDATE rate_meters SET arrival = %s WHERE key = %s"
FORGET = "DELETE FROM rate_meters WHERE key IN (SELECT key FROM rate_meters WHERE arrival <= %s FOR UPDATE SKIP LOCKED)"


class PostgresRates:
    def __init__(self, database: PostgresDatabase, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._taken = 0

    async def take(self, meters: Sequence[RateMeter]) -> float:
        keys, now = sorted({meter.key for meter in meters}), self._clock.time()

        async def count(connection: Any) -> float:
            await execute_each(connection, BEGIN, [(key,) for key in keys])
            wait, after = admission(meters, dict(await fetch(connection, LOCK, (keys,))), now)
            await execute_each(connection, SET, [(after[key], key) for key in sorted(after)])
            return wait

        self._taken += 1
        if self._taken % SWEEP == 0:
            await self._database.run(lambda connection: connection.execute(FORGET, (now,)))
        return await self._database.run(count)
