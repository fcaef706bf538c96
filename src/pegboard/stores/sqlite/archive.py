"""Reads and writes all records: the state file, and the file of embeddings."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import asdict
from functools import partial
from itertools import groupby
from pathlib import Path

from pegboard.averages import PRIOR
from pegboard.model import ToolStatistics
from pegboard.protocols import About, Clock
from pegboard.records import KINDS, Key, Kind, Record, columns
from pegboard.stores.database import batches
from pegboard.stores.retention import is_over, live
from pegboard.stores.sql.statements import NEXT_PIN_VERSION
from pegboard.stores.sql.tables import PAGE, TABLES, Dialect, deletion, record_of, rows_of
from pegboard.stores.sqlite.cache import EMBEDDING_MIGRATIONS
from pegboard.stores.sqlite.cache import REMEDY as CACHE_REMEDY
from pegboard.stores.sqlite.database import REMEDY, STATE_MIGRATIONS, SqliteFile

SQLITE = Dialect(mark="?")


class SqliteArchive:
    """State in one file, embeddings in another. ``prior`` fills in averages that were never stored."""

    def __init__(self, state: Path, embeddings: Path, clock: Clock, *, prior: ToolStatistics = PRIOR) -> None:
        self._state = SqliteFile(state, STATE_MIGRATIONS, remedy=REMEDY)
        self._cache = SqliteFile(embeddings, EMBEDDING_MIGRATIONS, remedy=CACHE_REMEDY)
        self._clock = clock
        self._prior = asdict(prior)

    async def about(self) -> About:
        now = self._clock.time()

        def count(connection: sqlite3.Connection, kind: Kind) -> int:
            return int(connection.execute(TABLES[kind].count(now)).fetchone()[0])

        def counts(connection: sqlite3.Connection) -> dict[Kind, int]:
            return {kind: count(connection, kind) for kind in KINDS if self._file(kind) is self._state}

        of_state = await self._state.run(counts)
        of_cache = await self._cache.run(lambda connection: count(connection, "embedding"))
        steps = [*await self._state.run(_migrations), *await self._cache.run(_migrations)]
        return About(
            backend="sqlite",
            place=str(self._state.path),
            version=sqlite3.sqlite_version,
            migrations=tuple(step.name for step in (*STATE_MIGRATIONS, *EMBEDDING_MIGRATIONS) if step.name in steps),
            counts=of_state | {"embedding": of_cache},
            bytes=sum(map(_size, (self._state.path, self._cache.path))),
        )

    async def read(self, kind: Kind, *, after: Key | None = None) -> AsyncIterator[Record]:
        last = after
        while page := await self._page(kind, last):
            for record in page:
                if not is_over(record, self._clock.time()):
                    yield record
            last = page[-1].identity

    async def write(self, records: Iterable[Record]) -> int:
        now = self._clock.time()

        def insert(connection: sqlite3.Connection, kind: Kind, some: Sequence[Record]) -> int:
            rows = [row for record in some for row in rows_of(record, now)]
            return connection.executemany(TABLES[kind].insert(SQLITE), rows).rowcount * len(some) // len(rows)

        def write(connection: sqlite3.Connection) -> int:
            """Embeddings go to their own file, outside this transaction: a partly written cache does no harm."""
            taken = 0
            for kind, group in groupby(live(records, now), key=lambda record: record.record):
                for some in batches(group, PAGE):
                    if kind == "embedding":
                        taken += self._cache.run_now(partial(insert, kind=kind, some=some))
                    else:
                        taken += insert(connection, kind, some)
                if kind == "pin":
                    connection.execute(NEXT_PIN_VERSION)
            return taken

        return await self._state.run_alone(write)

    async def remove(self, kind: Kind, *, keys: Sequence[Key] | None = None, before: float | None = None) -> int:
        query, each = deletion(TABLES[kind], SQLITE, keys, before)

        def delete(connection: sqlite3.Connection) -> int:
            return len({row for values in each for row in connection.execute(query, values)})

        removed = now = await self._file(kind).run_alone(delete)
        while keys is None and now:
            removed += (now := await self._file(kind).run_alone(delete))
        return removed

    def close(self) -> None:
        self._state.close()
        self._cache.close()

    async def _page(self, kind: Kind, last: Key | None) -> list[Record]:
        query = TABLES[kind].page(SQLITE, first=last is None)
        rows = await self._file(kind).run(lambda connection: connection.execute(query, last or ()).fetchall())
        return [record_of(kind, self._whole(kind, row)) for row in rows]

    def _whole(self, kind: Kind, row: Sequence[object]) -> Sequence[object]:
        """Fill in the prior for averages that an old file does not have."""
        if kind != "statistics":
            return row
        return [self._prior[name] if value is None else value for name, value in zip(columns(kind), row, strict=True)]

    def _file(self, kind: Kind) -> SqliteFile:
        return self._cache if kind == "embedding" else self._state


def _migrations(connection: sqlite3.Connection) -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM migrations")]


def _size(path: Path) -> int:
    """Bytes of a file and of its write-ahead log."""
    files = [path, path.with_name(f"{path.name}-wal")]
    return sum(file.stat().st_size for file in files if file.exists())
