"""Reads and writes all records on Redis. Redis keeps no order: names are sorted here, and values read in batches."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import AsyncIterator, Iterable, Sequence
from itertools import groupby
from typing import Any

from pegboard.protocols import About, Clock
from pegboard.records import Key, Kind, Record
from pegboard.stores.database import batches
from pegboard.stores.redis.cache import TTL, EmbeddingRecords
from pegboard.stores.redis.database import MIGRATIONS, RedisServer
from pegboard.stores.redis.habits import HabitRecords
from pegboard.stores.redis.pins import PinRecords
from pegboard.stores.redis.record_stores import RecordStore, scanned
from pegboard.stores.redis.sessions import RedisReplicas, SessionRecords
from pegboard.stores.redis.spend import HoldRecords, MeterRecords
from pegboard.stores.redis.statistics import LessonRecords, StatisticsRecords
from pegboard.stores.redis.switch_records import SwitchRecords
from pegboard.stores.retention import check_age, is_over, live


class RedisArchive:
    """``embeddings_ttl`` is the ``ttl`` of `RedisEmbeddings`."""

    def __init__(self, server: RedisServer, clock: Clock, *, embeddings_ttl: float | None = TTL) -> None:
        self._server = server
        self._clock = clock
        self._record_stores: dict[Kind, RecordStore[Any]] = {
            "session": SessionRecords(server, clock),
            "statistics": StatisticsRecords(server, clock),
            "lesson": LessonRecords(server, clock),
            "habit": HabitRecords(server, clock),
            "meter": MeterRecords(server, clock),
            "hold": HoldRecords(server, clock),
            "pin": PinRecords(server, clock),
            "switch": SwitchRecords(server, clock),
            "embedding": EmbeddingRecords(server, clock, ttl=embeddings_ttl),
        }

    async def about(self) -> About:
        replicas = await RedisReplicas(self._server, self._clock).count()
        async with self._server.client() as client:
            applied = {name.decode() for name in await client.smembers(self._server.key("migrations"))}
            return About(
                backend="redis",
                place=f"{self._server.place}, prefix {self._server.prefix}",
                version=str((await client.info("server"))["redis_version"]),
                migrations=tuple(step.name for step in MIGRATIONS if step.name in applied),
                counts={kind: await store.count(client) for kind, store in self._record_stores.items()},
                bytes=await self._bytes(client),
                replicas=replicas,
            )

    async def read(self, kind: Kind, *, after: Key | None = None) -> AsyncIterator[Record]:
        store = self._record_stores[kind]
        async with self._server.client() as client:
            names = await store.names(client)
        if after is not None:
            names = names[bisect_right(names, after) :]
        for keys in batches(names):
            async with self._server.client() as client:
                records = await store.read(client, keys)
            for record in records:
                if not is_over(record, self._clock.time()):
                    yield record

    async def write(self, records: Iterable[Record]) -> int:
        now, taken = self._clock.time(), 0
        for kind, group in groupby(live(records, now), key=lambda record: record.record):
            for some in batches(group):
                taken += await self._record_stores[kind].add(some)
        return taken

    async def remove(self, kind: Kind, *, keys: Sequence[Key] | None = None, before: float | None = None) -> int:
        store, removed = self._record_stores[kind], 0
        async with self._server.client() as client:
            if before is not None:
                check_age(kind)
                return await store.remove_old(client, before)
            for some in batches(await store.names(client) if keys is None else keys):
                removed += await store.remove(client, some)
        return removed

    async def _bytes(self, client: Any) -> int:
        total = 0
        for some in batches(await scanned(client, self._server)):
            commands = client.pipeline(transaction=False)
            for name in some:
                commands.memory_usage(self._server.key(name))
            total += sum(size or 0 for size in await commands.execute())
        return total
