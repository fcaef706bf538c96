"""One PostgreSQL database and the schema in it that belongs to Pegboard."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, TypeVar

from pegboard.circuit_breaker import Breaker
from pegboard.errors import ConfigError, StoreError, ValueRefused
from pegboard.extras import required
from pegboard.stores.database import Migration, SingleFlight, batches, outstanding
from pegboard.stores.sql import activity_rows, activity_sums, result_rows
from pegboard.stores.sql.statements import pin_versions

SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
MIGRATING = 7_332_001
"""The advisory lock held while the schema is migrated."""
LEDGER = "CREATE TABLE IF NOT EXISTS migrations (name text PRIMARY KEY)"
GRACE = 1.0
"""Seconds after ``timeout`` in which the server itself may say that it gave up."""
OF_A_BATCH = 10
"""How many times as long a batch may take: its server answers at the end of all its statements."""
KEEPALIVES = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
T = TypeVar("T")
ACTIVITY_SUMS = activity_sums.SumDialect(mark="%s", called="jsonb_array_elements_text(called::jsonb) AS each(value)")
NOW = "extract(epoch FROM now())"
MIGRATIONS = (
    Migration(
        "tables",
        (
            "CREATE TABLE sessions (key text PRIMARY KEY, version bigint NOT NULL, "
            "expires double precision NOT NULL, state text NOT NULL)",
            "CREATE INDEX sessions_by_expiry ON sessions (expires)",
            "CREATE TABLE tool_statistics (server text, name text, calls bigint NOT NULL, successes bigint NOT NULL, "
            "success double precision NOT NULL, variance double precision NOT NULL, "
            "failure double precision NOT NULL, latency double precision NOT NULL, PRIMARY KEY (server, name))",
            "CREATE TABLE spend_meters (kind text, name text, spent bigint NOT NULL, PRIMARY KEY (kind, name))",
            "CREATE TABLE spend_holds (kind text, name text, reservation text, amount bigint NOT NULL, "
            "expires double precision NOT NULL, PRIMARY KEY (kind, name, reservation))",
            "CREATE INDEX holds_of_a_reservation ON spend_holds (reservation)",
            "CREATE INDEX holds_by_expiry ON spend_holds (expires)",
            "CREATE TABLE pins (server text, name text, approved text NOT NULL, seen text NOT NULL, "
            "PRIMARY KEY (server, name))",
            "CREATE TABLE embeddings (key text PRIMARY KEY, vector bytea NOT NULL)",
        ),
    ),
    Migration(
        "replicas",
        ("CREATE TABLE replicas (id text PRIMARY KEY, url text NOT NULL, ends double precision NOT NULL)",),
    ),
    Migration(
        "last use",
        (
            f"ALTER TABLE tool_statistics ADD COLUMN used double precision NOT NULL DEFAULT {NOW}",
            "ALTER TABLE spend_meters ADD COLUMN used double precision",
            f"UPDATE spend_meters SET used = {NOW} WHERE kind <> 'key'",  # noqa: S608
            f"ALTER TABLE embeddings ADD COLUMN used double precision NOT NULL DEFAULT {NOW}",
        ),
    ),
    Migration(
        "lessons",
        (
            "CREATE TABLE lessons (key text PRIMARY KEY, requests double precision NOT NULL, "
            "conversations double precision NOT NULL, later double precision NOT NULL, "
            "asked double precision NOT NULL, growth double precision NOT NULL, wanted double precision NOT NULL, "
            "added double precision NOT NULL, called double precision NOT NULL, changed double precision NOT NULL, "
            "returned double precision NOT NULL, kept double precision NOT NULL, alike double precision NOT NULL, "
            "used double precision NOT NULL)",
        ),
    ),
    Migration(
        "texts of pins",
        ("ALTER TABLE pins ADD COLUMN approved_text text", "ALTER TABLE pins ADD COLUMN seen_text text"),
    ),
    Migration(
        "signing keys",
        ("CREATE TABLE signing_keys (id text PRIMARY KEY, made double precision NOT NULL, secret text NOT NULL)",),
    ),
    Migration(
        "habits",
        (
            "CREATE TABLE habits (key text NOT NULL, server text NOT NULL, name text NOT NULL, sums bytea NOT NULL, "
            "used double precision NOT NULL, PRIMARY KEY (key, server, name))",
        ),
    ),
    Migration(
        "audit log",
        (
            "CREATE TABLE audit_lines (number bigint PRIMARY KEY, at double precision NOT NULL, hash text NOT NULL, "
            "line text NOT NULL)",
            "CREATE INDEX audit_lines_by_time ON audit_lines (at)",
            "CREATE TABLE audit_ends (id integer PRIMARY KEY CHECK (id = 1), text text NOT NULL)",
        ),
    ),
    Migration(
        "rate limits",
        ("CREATE TABLE rate_meters (key text PRIMARY KEY, arrival double precision NOT NULL)",),
    ),
    Migration("activity", activity_rows.table("bigint", "double precision")),
    Migration("sums of activity", activity_sums.table("bigint", "double precision", ACTIVITY_SUMS)),
    Migration("usage in activity", activity_rows.usage_columns("bigint")),
    Migration("kept results", result_rows.table("bytea", "double precision", "bigint")),
    Migration(
        "switches",
        (
            "CREATE TABLE switches (server text, name text, definition text NOT NULL, who text NOT NULL, "
            "at double precision NOT NULL, PRIMARY KEY (server, name))",
        ),
    ),
    Migration("versions of pins", pin_versions("bigint")),
    Migration(
        "filters of activity",
        activity_rows.filter_indexes(
            "CREATE INDEX activity_of_a_tool ON activity USING gin ((called::jsonb) jsonb_path_ops)"
        ),
    ),
    Migration(
        "rejections beside switches",
        (
            "ALTER TABLE switches DROP CONSTRAINT switches_pkey",
            "ALTER TABLE switches ADD PRIMARY KEY (server, name, definition)",
        ),
    ),
)
"""Existing rows count as used when they are migrated."""


class PostgresDatabase:
    """A pool of at most ``connections``. Waiting for a connection, a lock or an answer raises StoreError after
    ``timeout`` seconds, and the transaction is rolled back. A server that has fallen silent gets `GRACE` seconds more,
    then its connections are closed."""

    def __init__(
        self,
        url: str,
        *,
        schema: str = "pegboard",
        connections: int = 8,
        timeout: float = 5.0,
        migrations: Sequence[Migration] = MIGRATIONS,
        breaker: Breaker[StoreError] | None = None,
    ) -> None:
        if not SCHEMA.fullmatch(schema):
            raise ConfigError(f"{schema!r} is not a schema name.", remedy="Use lower-case letters, digits and _.")
        self._url = url
        self.schema = schema
        self._connections = connections
        self._timeout = timeout
        self._migrations = migrations
        self._breaker = breaker
        self._pool: Any = None
        self._silent = False
        """Whether a connection was closed because nothing came over it."""
        self._open = SingleFlight(self._opened)

    async def run(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """The result of ``work``, which gets a connection; its changes are one transaction. Raises ValueRefused,
        and StoreError, which opens the breaker unless the server did answer: that it gave up a slow statement."""
        errors = required("psycopg", "postgres")
        refusals = (errors.DataError, errors.errors.ProgramLimitExceeded, UnicodeEncodeError)
        slow = (errors.errors.QueryCanceled, errors.errors.LockNotAvailable)
        refused: Exception | None = None
        with self._breaker.call() if self._breaker else nullcontext():
            try:
                pool = self._pool or await self._open()
                async with pool.connection() as connection:
                    try:
                        async with connection.transaction():
                            result = await work(connection)
                    except (*refusals, *slow) as error:
                        refused = error
                await self._silence()
                if refused is None:
                    return result
            except (errors.Error, OSError) as error:
                silence = await self._silence()
                why = (
                    silence
                    if silence and isinstance(error, errors.OperationalError)
                    else str(error).strip().rstrip(".")
                )
                raise StoreError(
                    f"PostgreSQL at {self.place} cannot be used: {why}.",
                    remedy="Check that it runs, that its address is right, and that the user may use the schema.",
                ) from error
        why = f"PostgreSQL at {self.place} did not do this: {str(refused).strip().rstrip('.')}."
        if isinstance(refused, refusals):
            raise ValueRefused(why, remedy="Check the value.") from refused
        raise StoreError(why, remedy="Check whether the server is overloaded.") from refused

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.close()
            self._pool = None

    @property
    def place(self) -> str:
        """Host, port and database, without the password."""
        given = self._parts()
        host, port = given.get("host", "localhost"), given.get("port", 5432)
        return f"{host}:{port}/{given.get('dbname', '')}"

    def _parts(self) -> dict[str, Any]:
        psycopg = required("psycopg", "postgres")
        try:
            parts: dict[str, Any] = required("psycopg.conninfo", "postgres").conninfo_to_dict(self._url)
        except psycopg.ProgrammingError as error:
            raise ConfigError(
                "The address of PostgreSQL is not valid.", remedy="Write it as postgresql://USER@HOST:PORT/DATABASE."
            ) from error
        return parts

    async def _silence(self) -> str:
        """What to say if a connection was silent. Its siblings, which each would be waited for, are made anew."""
        if not self._silent:
            return ""
        self._silent = False
        if self._pool is not None and hasattr(self._pool, "drain"):
            await self._pool.drain()
        return f"it has not answered for {self._timeout + GRACE:g} s"

    async def _opened(self) -> Any:
        self._parts()
        pool = self._made()
        try:
            await pool.open(wait=True, timeout=self._timeout)
            async with pool.connection() as connection:
                await self._migrate(connection)
        except BaseException:
            await pool.close()
            raise
        self._pool = pool
        return pool

    def _made(self) -> Any:
        pools = required("psycopg_pool", "postgres")
        watched = {"tcp_user_timeout": round((self._timeout + GRACE) * 1000), **KEEPALIVES}
        given = self._parts()
        return pools.AsyncConnectionPool(
            self._url,
            connection_class=_limited(required("psycopg", "postgres"), self._timeout, self._fell_silent),
            min_size=1,
            max_size=self._connections,
            open=False,
            timeout=self._timeout,
            reconnect_timeout=self._timeout,
            kwargs={
                "connect_timeout": max(1, round(self._timeout)),
                **{name: value for name, value in watched.items() if name not in given},
            },
            configure=self._configure,
            check=pools.AsyncConnectionPool.check_connection,
        )

    def _fell_silent(self) -> None:
        self._silent = True

    async def _configure(self, connection: Any) -> None:
        limit = f"{int(self._timeout * 1000)}ms"
        for name, value in {"search_path": self.schema, "statement_timeout": limit, "lock_timeout": limit}.items():
            await connection.execute("SELECT set_config(%s, %s, false)", (name, value))
        await connection.commit()

    async def _migrate(self, connection: Any) -> None:
        """Check again under the lock: another process may have migrated first. The steps may take as long as a large
        table needs."""
        if not await self._outstanding(connection):
            return
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATING,))
        await connection.execute("SELECT set_config('statement_timeout', '0', true)")
        connection.is_limited = False
        if not await fetch(connection, "SELECT 1 WHERE to_regnamespace(%s) IS NOT NULL", (self.schema,)):
            await connection.execute(f"CREATE SCHEMA {self.schema}")
        await connection.execute(LEDGER)
        for step in await self._outstanding(connection):
            for statement in step.statements:
                await connection.execute(statement)
            await connection.execute("INSERT INTO migrations VALUES (%s)", (step.name,))
        connection.is_limited = True

    async def _outstanding(self, connection: Any) -> list[Migration]:
        ledger = f"{self.schema}.migrations"
        there = await (await connection.execute("SELECT to_regclass(%s)", (ledger,))).fetchone()
        rows = await (await connection.execute("SELECT name FROM migrations")).fetchall() if there[0] else []
        where = f"The schema {self.schema!r} of PostgreSQL at {self.place}"
        return outstanding(self._migrations, {name for (name,) in rows}, where)


async def fetch(connection: Any, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """All rows of a query."""
    rows: list[tuple[Any, ...]] = await (await connection.execute(query, values)).fetchall()
    return rows


async def execute_each(connection: Any, query: str, rows: Sequence[Sequence[Any]]) -> int:
    """Execute a statement once for each row of values, in order, pipelined in batches: each is waited for. Returns the
    number of rows that it changed."""
    changed = 0
    connection.patience = OF_A_BATCH
    try:
        async with connection.cursor() as cursor:
            for some in batches(rows):
                await cursor.executemany(query, some)
                changed += cursor.rowcount
    finally:
        connection.patience = 1
    return changed


def _limited(psycopg: Any, seconds: float, fell_silent: Callable[[], None]) -> Any:
    """A class of connections that are closed if nothing comes for longer than ``seconds`` and `GRACE`: the limits that
    the server keeps do nothing if it cannot be reached. ``fell_silent`` is called then."""

    class LimitedConnection(psycopg.AsyncConnection):  # type: ignore[misc]
        is_limited = True
        patience = 1

        async def wait(self, work: Any, *given: Any, **named: Any) -> Any:
            """Whatever is sent waits here for its answers."""
            if not self.is_limited:
                return await super().wait(work, *given, **named)
            with _unless_silent(seconds * self.patience, self._cut) as heard:
                return await super().wait(_telling(work, heard), *given, **named)

        def _cut(self) -> None:
            fell_silent()
            with suppress(OSError, psycopg.Error):
                wire = socket.socket(fileno=self.fileno())
                try:
                    wire.shutdown(socket.SHUT_RDWR)
                finally:
                    wire.detach()

    return LimitedConnection


@contextmanager
def _unless_silent(seconds: float, cut: Callable[[], None]) -> Iterator[Callable[[], None]]:
    """Call ``cut`` if nothing is heard for longer. What came while the event loop stood still is read within the
    grace."""
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle

    def grace() -> None:
        nonlocal timer
        timer = loop.call_later(GRACE, cut)

    def heard() -> None:
        nonlocal timer
        timer.cancel()
        timer = loop.call_later(seconds, grace)

    timer = loop.call_later(seconds, grace)
    try:
        yield heard
    finally:
        timer.cancel()


def _telling(work: Generator[Any, Any, T], heard: Callable[[], None]) -> Generator[Any, Any, T]:
    """The same work of psycopg, which waits for its connection at each ``yield``; ``heard`` is called when it is
    ready."""
    try:
        wanted = next(work)
        while True:
            ready = yield wanted
            if ready:
                heard()
            wanted = work.send(ready)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
