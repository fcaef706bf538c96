"""Tables in PostgreSQL with the extension pgvector: a graph (HNSW) over half-precision vectors, rescored by whole ones.

Connections are synchronous, each used on a thread, so that an index belongs to no event loop.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, TypeVar

from pegboard.errors import ConfigError, StoreError
from pegboard.extras import required
from pegboard.model import Floats, ToolId
from pegboard.protocols import Filter, Hits
from pegboard.retrieval.index.stored_rows import batches, digest, key_of, tool_of

EXTRA = "pgvector"
LEAST_VERSION = (0, 8)
"""Of the extension: from here on a search through the graph goes on until enough rows pass the filter."""
APPROXIMATE_ABOVE = 20_000
"""Maximum vectors compared one by one."""
LOOKED_AT = 200
"""Candidates that the graph names (`hnsw.ef_search`); for more than half as many results all vectors are compared."""
MOST_DIMENSIONS = 4_000
"""Of a graph over half-precision vectors; longer ones are compared one by one."""
BATCH = 500
"""Vectors per statement."""
FILLING = 15.0
"""Factor on the timeout for writing, because the server extends its graph meanwhile."""
CONNECTIONS = 8
MAKING = 7_332_003
"""The advisory lock held while the extension, the schema or a table is made."""
SESSION = {
    "plan_cache_mode": "force_custom_plan",  # a filter's length decides the plan
    "jit": "off",
    "hnsw.ef_search": str(LOOKED_AT),
    "hnsw.iterative_scan": "relaxed_order",
}
NO_EXTENSION = "Install pgvector 0.8 or later there (https://github.com/pgvector/pgvector), or choose another index."

T = TypeVar("T")


class PgvectorDatabase:
    """The connections of one process to one database, opened when they are first needed and shared by its tables.

    What takes longer than ``timeout`` seconds raises StoreError, and so does a server without the extension. Each use
    runs within ``guard``, which may be a circuit breaker. A connection that the server has closed is opened again.
    """

    def __init__(
        self,
        url: str,
        *,
        schema: str = "pegboard_vectors",
        timeout: float = 2.0,
        guard: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._psycopg = required("psycopg", EXTRA)
        self._url = url
        self._parts()
        self.schema = schema
        self.timeout = timeout
        self._guard = guard
        self._idle: list[Any] = []
        self._places = threading.BoundedSemaphore(CONNECTIONS)
        self._has_extension = False
        weakref.finalize(self, _close_all, self._idle)

    async def run(self, work: Callable[[Any], T], *, seconds: float | None = None) -> T:
        """The result of ``work``, which gets a connection on a thread; its changes are one transaction. Work is done
        again where the server had closed the connection since its last use."""
        limit = seconds or self.timeout
        with self._guard():
            try:
                async with asyncio.timeout(limit):
                    return await asyncio.to_thread(self._done, work, limit)
            except (TimeoutError, self._psycopg.errors.QueryCanceled):
                raise self._unusable(f"no answer within {limit:g} s") from None
            except self._psycopg.Error as error:
                raise self._unusable(str(error).strip().partition("\n")[0].rstrip(".")) from None

    @property
    def place(self) -> str:
        """Host, port and database, without the password."""
        given = self._parts()
        return f"{given.get('host', 'localhost')}:{given.get('port', 5432)}/{given.get('dbname', '')}"

    def _parts(self) -> dict[str, Any]:
        try:
            parts: dict[str, Any] = required("psycopg.conninfo", EXTRA).conninfo_to_dict(self._url)
        except self._psycopg.ProgrammingError:
            raise ConfigError(
                "The address in [pgvector] is not valid.", remedy="Write it as postgresql://USER@HOST:PORT/DATABASE."
            ) from None
        return parts

    def _done(self, work: Callable[[Any], T], limit: float) -> T:
        with self._places:
            while True:
                used = self._idle.pop() if self._idle else None
                connection = used or self._opened()
                try:
                    with connection.transaction():
                        _configure(connection, {"statement_timeout": f"{math.ceil(limit * 1000)}ms"}, local=True)
                        if not self._has_extension:
                            self._require_extension(connection)
                        result = work(connection)
                    self._has_extension = True  # not before the transaction that made it
                    return result
                except self._psycopg.OperationalError:
                    if used is None or not connection.closed:
                        raise
                finally:
                    if not connection.closed:
                        self._idle.append(connection)

    def _opened(self) -> Any:
        connection = self._psycopg.connect(
            self._url,
            autocommit=True,
            prepare_threshold=None,
            connect_timeout=max(2, math.ceil(self.timeout)),  # libpq knows no shorter one
            tcp_user_timeout=math.ceil(self.timeout * FILLING * 1000),
        )
        _configure(connection, SESSION | {"search_path": f"{self.schema}, public, extensions"})
        return connection

    def _require_extension(self, connection: Any) -> None:
        """Raises StoreError if there is none and it cannot be made."""
        if (version := _extension(connection)) is None:
            listed = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
            if connection.execute(listed).fetchone() is None:
                raise StoreError(f"PostgreSQL at {self.place} does not have pgvector.", remedy=NO_EXTENSION)
            try:
                with connection.transaction():
                    connection.execute("SELECT pg_advisory_xact_lock(%s)", [MAKING])
                    connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
            except self._psycopg.errors.InsufficientPrivilege:
                raise StoreError(
                    f"The user of PostgreSQL at {self.place} may not turn on pgvector.",
                    remedy="Have an administrator of the database execute: CREATE EXTENSION vector SCHEMA public.",
                ) from None
            version = _extension(connection)
        if tuple(map(int, str(version).split(".")[:2])) < LEAST_VERSION:
            raise StoreError(f"PostgreSQL at {self.place} has pgvector {version}.", remedy=NO_EXTENSION)

    def _unusable(self, why: str) -> StoreError:
        return StoreError(
            f"PostgreSQL at {self.place} cannot be used: {why}.",
            remedy="Check that it runs, that [pgvector] names its address, and that the user may use the schema.",
        )


class PgvectorIndex:
    """Vectors in one table, named after ``names`` (a board, a vector space): who has the same names shares it.

    Up to ``approximate_above`` vectors, and where a filter names the tools, all are compared; beyond, the graph names
    candidates. A filter is part of the statement, so that what it excludes takes no place.
    """

    def __init__(
        self, database: PgvectorDatabase, names: Sequence[str], *, approximate_above: int = APPROXIMATE_ABOVE
    ) -> None:
        self._database = database
        self._called = ".".join(filter(None, names))
        self._name = f"vectors_{hashlib.sha256(chr(0).join(names).encode()).hexdigest()[:24]}"
        self._table = f"{database.schema}.{self._name}"
        self._approximate_above = approximate_above
        self._dimensions = 0
        """0 until the table is known to be there."""
        self._count = 0

    async def add(self, ids: Sequence[ToolId], vectors: Floats) -> None:
        """Add vectors, except those already stored, which their stored digests tell."""
        latest = {tool: vectors[place] for place, tool in enumerate(ids)}

        def write(connection: Any, some: Sequence[ToolId]) -> None:
            self._make(connection, vectors.shape[1])
            digests = {key_of(tool): digest(latest[tool]) for tool in some}
            among = f"SELECT tool, digest FROM {self._table} WHERE tool = ANY(%s)"
            known = dict(connection.execute(among, [list(digests)]).fetchall())
            new = [tool for tool in some if known.get(key_of(tool)) != digests[key_of(tool)]]
            rows = [(key_of(tool), tool.server, digests[key_of(tool)], _written(latest[tool])) for tool in new]
            if rows:
                connection.execute(
                    f"INSERT INTO {self._table} (tool, server, digest, vector) "
                    "SELECT tool, server, digest, vector::vector "
                    "FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[]) AS new (tool, server, digest, vector) "
                    "ON CONFLICT (tool) DO UPDATE SET digest = excluded.digest, vector = excluded.vector",
                    [list(column) for column in zip(*rows, strict=True)],
                )
            self._count += sum(key_of(tool) not in known for tool in new)

        for some in batches(sorted(latest), BATCH):  # in order, so that two writers cannot deadlock
            await self._run(partial(write, some=some), seconds=self._patience)

    async def remove(self, ids: Sequence[ToolId]) -> None:
        def delete(connection: Any) -> None:
            if keys and self._is_there(connection):
                among = f"SELECT tool FROM {self._table} WHERE tool = ANY(%s) ORDER BY tool FOR UPDATE"
                gone = connection.execute(f"DELETE FROM {self._table} WHERE tool IN ({among})", [keys])
                self._count -= gone.rowcount

        keys = [key_of(tool) for tool in ids]
        await self._run(delete, seconds=self._patience)

    async def ids(self) -> frozenset[ToolId]:
        def read(connection: Any) -> frozenset[ToolId]:
            if not self._is_there(connection):
                return frozenset()
            there = frozenset(tool_of(key) for (key,) in connection.execute(f"SELECT tool FROM {self._table}"))
            self._count = len(there)
            return there

        return await self._run(read, seconds=self._patience)

    async def search(self, queries: Floats, k: int, where: Filter | None = None) -> list[Hits]:
        """Where the graph finds fewer than k, as it may with a filter that leaves few, all that pass are compared."""
        if k < 1 or not len(queries):
            return [[] for _ in queries]
        passing, values = _condition(where)
        exact = (where is not None and where.only is not None) or 2 * k > LOOKED_AT

        def find(connection: Any) -> list[Hits]:
            if not self._is_there(connection):
                return [[] for _ in queries]
            through_graph = not exact and self._approximate_above < self._count and self._dimensions <= MOST_DIMENSIONS
            found = []
            for query in map(_written, queries):
                asked = values | {"query": query, "k": k}
                rows = connection.execute(self._near(passing), asked).fetchall() if through_graph else []
                if len(rows) < k:
                    rows = connection.execute(self._nearest(self._table, passing), asked).fetchall()
                found.append([(tool_of(key), float(score)) for key, score in rows])
            return found

        return await self._run(find)

    @property
    def _patience(self) -> float:
        return self._database.timeout * FILLING

    async def _run(self, work: Callable[[Any], T], *, seconds: float | None = None) -> T:
        try:
            return await self._database.run(work, seconds=seconds)
        except StoreError:
            self._dimensions = 0  # the table may be gone
            raise

    def _nearest(self, rows: str, passing: str) -> str:
        return (
            f"SELECT tool, -(vector <#> %(query)s::vector) FROM {rows}{passing} "
            "ORDER BY vector <#> %(query)s::vector, tool LIMIT %(k)s"
        )

    def _near(self, passing: str) -> str:
        """The nearest of the candidates that the graph names."""
        half = f"halfvec({self._dimensions})"
        candidates = (
            f"SELECT tool, vector FROM {self._table}{passing} "
            f"ORDER BY vector::{half} <#> %(query)s::vector::{half} LIMIT {LOOKED_AT}"
        )
        return self._nearest(f"({candidates}) AS near", "")

    def _is_there(self, connection: Any) -> bool:
        """Whether the table is there; then its width and its number of vectors are known."""
        if not self._dimensions:
            width = "SELECT atttypmod FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attname = 'vector'"
            found = connection.execute(width, [self._table]).fetchone()
            if found is not None:
                (self._count,) = connection.execute(f"SELECT count(*) FROM {self._table}").fetchone()
                (self._dimensions,) = found
        return self._dimensions > 0

    def _make(self, connection: Any, dimensions: int) -> None:
        """Make the table, if another process has not."""
        if self._is_there(connection):
            return
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [MAKING])
        if not self._is_there(connection):
            statements = [
                f"CREATE SCHEMA IF NOT EXISTS {self._database.schema}",
                f'CREATE TABLE {self._table} (tool text COLLATE "C" PRIMARY KEY, server text NOT NULL, '
                f"digest text NOT NULL, vector vector({dimensions}) NOT NULL)",
                f"CREATE INDEX ON {self._table} (server)",
            ]
            if dimensions <= MOST_DIMENSIONS:
                half = f"(vector::halfvec({dimensions})) halfvec_ip_ops"
                statements.append(f"CREATE INDEX ON {self._table} USING hnsw ({half})")
            for statement in statements:
                connection.execute(statement)
            comment = required("psycopg.sql", EXTRA).SQL("COMMENT ON TABLE {} IS {}")
            named = required("psycopg.sql", EXTRA).Identifier(self._database.schema, self._name)
            connection.execute(comment.format(named, self._called))
            self._dimensions, self._count = dimensions, 0


def _condition(where: Filter | None) -> tuple[str, dict[str, Any]]:
    """A filter as a condition of SQL, and its values."""
    if where is None:
        return "", {}
    conditions, values = [], {}
    if where.servers is not None:
        conditions.append("server = ANY(%(servers)s)")
        values["servers"] = sorted(where.servers)
    if where.excluded:
        conditions.append("tool <> ALL(%(excluded)s)")
        values["excluded"] = [key_of(tool) for tool in where.excluded]
    if where.only is not None:
        conditions.append("tool = ANY(%(only)s)")
        values["only"] = [key_of(tool) for tool in where.only]
    return f" WHERE {' AND '.join(conditions)}" if conditions else "", values


def _extension(connection: Any) -> str | None:
    found = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
    return None if found is None else str(found[0])


def _configure(connection: Any, values: dict[str, str], *, local: bool = False) -> None:
    asked = ", ".join(["set_config(%s, %s, %s)"] * len(values))
    connection.execute(f"SELECT {asked}", [part for item in values.items() for part in (*item, local)])


def _written(vector: Floats) -> str:
    """As the extension reads it; nine digits tell every float32 from the next.

    >>> import numpy as np
    >>> _written(np.array([0.1, 1], np.float32))
    '[0.100000001,1]'
    """
    return f"[{','.join(map('%.9g'.__mod__, vector.tolist()))}]"


def _close_all(connections: list[Any]) -> None:
    for connection in connections:
        connection.close()
