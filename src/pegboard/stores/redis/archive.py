"""The records on Redis. It has no order: names are sorted here, and what they stand for is read some at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from itertools import groupby
from typing import Any

from pegboard.records import Key, Kind, Record
from pegboard.seams import About, Clock
from pegboard.stores.batches import batches
from pegboard.stores.redis.embeddings import TTL
from pegboard.stores.redis.hash_shelves import LessonShelf, MeterShelf, PinShelf, StatisticsShelf
from pegboard.stores.redis.key_shelves import EmbeddingShelf, HoldShelf, SessionShelf
from pegboard.stores.redis.replicas import RedisReplicas
from pegboard.stores.redis.server import MIGRATIONS, RedisServer
from pegboard.stores.redis.shelves import Shelf, scanned
from pegboard.stores.tables import check_stamp, is_over, live


class RedisArchive:
    """``embeddings_ttl`` as for `RedisEmbeddings`."""

    def __init__(self, server: RedisServer, clock: Clock, *, embeddings_ttl: float | None = TTL) -> None:
        self._server = server
        self._clock = clock
        self._shelves: dict[Kind, Shelf[Any]] = {
            "session": SessionShelf(server, clock),
            "statistics": StatisticsShelf(server, clock),
            "lesson": LessonShelf(server, clock),
            "meter": MeterShelf(server, clock),
            "hold": HoldShelf(server, clock),
            "pin": PinShelf(server, clock),
            "embedding": EmbeddingShelf(server, clock, ttl=embeddings_ttl),
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
                counts={kind: await shelf.count(client) for kind, shelf in self._shelves.items()},
                bytes=await self._bytes(client),
                replicas=replicas,
            )

    async def read(self, kind: Kind) -> AsyncIterator[Record]:
        shelf = self._shelves[kind]
        async with self._server.client() as client:
            names = await shelf.names(client)
        for keys in batches(names):
            async with self._server.client() as client:
                records = await shelf.read(client, keys)
            for record in records:
                if not is_over(record, self._clock.time()):
                    yield record

    async def write(self, records: Iterable[Record]) -> int:
        now, taken = self._clock.time(), 0
        for kind, group in groupby(live(records, now), key=lambda record: record.record):
            for some in batches(group):
                taken += await self._shelves[kind].add(some)
        return taken

    async def remove(self, kind: Kind, *, keys: Sequence[Key] | None = None, before: float | None = None) -> int:
        shelf, removed = self._shelves[kind], 0
        async with self._server.client() as client:
            if before is not None:
                check_stamp(kind)
                return await shelf.remove_old(client, before)
            for some in batches(await shelf.names(client) if keys is None else keys):
                removed += await shelf.remove(client, some)
        return removed

    async def _bytes(self, client: Any) -> int:
        total = 0
        for some in batches(await scanned(client, self._server)):
            commands = client.pipeline(transaction=False)
            for name in some:
                commands.memory_usage(self._server.key(name))
            total += sum(size or 0 for size in await commands.execute())
        return total
