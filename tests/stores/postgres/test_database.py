"""What holds for stores in PostgreSQL alone; `contract` has what holds for all."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from types import ModuleType
from uuid import uuid4

import numpy as np
import pytest
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.sql import SQL, Identifier

from pegboard.clock import SYSTEM_CLOCK
from pegboard.errors import ConfigError, StoreError, ValueRefused
from pegboard.habits import HabitKey
from pegboard.model import Fingerprint, Outcome, Session, ToolId
from pegboard.records import SwitchRecord
from pegboard.stores.backend import store_breaker
from pegboard.stores.database import Migration
from pegboard.stores.postgres import (
    PostgresArchive,
    PostgresDatabase,
    PostgresHabits,
    PostgresPins,
    PostgresSessions,
    PostgresStatistics,
    habits,
    statistics,
)
from pegboard.stores.postgres.database import MIGRATIONS, execute_each, fetch
from pegboard.testing import FakeClock
from pegboard.usage import Usage
from pegboard_bench.ports import free_port
from records import held
from services import POSTGRES, drop_schema, needs_postgres

Make = Callable[..., PostgresDatabase]
TOOL = ToolId("git", "log")


@pytest.fixture
def schema() -> str:
    return f"test_{uuid4().hex}"


@pytest.fixture
async def database(schema: str) -> AsyncIterator[Make]:
    """Databases with one schema, which is dropped in the end."""
    made = list[PostgresDatabase]()

    def make(**options: object) -> PostgresDatabase:
        made.append(PostgresDatabase(POSTGRES, schema=schema, **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for each in made:
        await each.close()
    await drop_schema(schema)


async def steps(database: PostgresDatabase) -> list[str]:
    rows = await database.run(lambda connection: fetch(connection, "SELECT name FROM steps ORDER BY at"))
    return [name for (name,) in rows]


ONE = Migration("one", ("CREATE TABLE steps (at serial, name text)", "INSERT INTO steps (name) VALUES ('one')"))
TWO = Migration("two", ("INSERT INTO steps (name) VALUES ('two')",))
BROKEN = Migration("two", ("INSERT INTO steps (name) VALUES ('half')", "no statement"))


@needs_postgres
async def test_switches_of_an_older_version_are_kept(database: Make, clock: FakeClock) -> None:
    before = next(at for at, step in enumerate(MIGRATIONS) if step.name == "rejections beside switches")
    rows = [("git", "", "", "ann", 1.5), ("git", "log", "a1", "ben", 2.5)]
    await database(migrations=MIGRATIONS[:before]).run(
        lambda connection: execute_each(connection, "INSERT INTO switches VALUES (%s, %s, %s, %s, %s)", rows)
    )

    archive = PostgresArchive(database(), clock)
    await archive.write([SwitchRecord(server="git", name="log", definition="", who="ann", at=1.0)])

    kept = [record async for record in archive.read("switch") if isinstance(record, SwitchRecord)]
    assert [(*each.identity, each.who, each.at) for each in kept] == [
        rows[0],
        ("git", "log", "", "ann", 1.0),
        rows[1],
    ]


@needs_postgres
async def test_each_step_is_applied_once_and_in_order_by_whoever_comes_first(database: Make) -> None:
    assert await steps(database(migrations=[ONE])) == ["one"]

    seen = await asyncio.gather(*(steps(database(migrations=[ONE, TWO])) for _ in range(4)))

    assert seen == [["one", "two"]] * 4


@needs_postgres
async def test_several_processes_may_make_the_schema_at_once(database: Make) -> None:
    stores = [PostgresStatistics(database()) for _ in range(6)]

    await asyncio.gather(*(store.observe([Outcome(tool=TOOL, success=True, latency_ms=1)]) for store in stores))

    assert (await stores[0].read())[TOOL].calls == 6


@needs_postgres
async def test_a_step_that_fails_leaves_nothing_half_done(database: Make) -> None:
    await steps(database(migrations=[ONE]))

    with pytest.raises(StoreError, match="syntax error"):
        await steps(database(migrations=[ONE, BROKEN]))

    assert await steps(database(migrations=[ONE, TWO])) == ["one", "two"]


@needs_postgres
async def test_an_older_program_refuses_a_newer_schema(database: Make) -> None:
    await PostgresStatistics(database(migrations=[*MIGRATIONS, Migration("more")])).read()

    with pytest.raises(ConfigError, match=r"changed by a newer version of Pegboard \('more'\)\. Upgrade"):
        await PostgresStatistics(database()).read()


@needs_postgres
async def test_more_tasks_than_connections_wait_for_their_turn(database: Make) -> None:
    made = database(connections=2)

    rows = await asyncio.gather(*(made.run(lambda connection: fetch(connection, "SELECT 7")) for _ in range(40)))

    assert rows == [[(7,)]] * 40


@needs_postgres
async def test_a_lock_is_waited_for_as_long_as_configured(database: Make, schema: str) -> None:
    pins = PostgresPins(database(timeout=1))
    await pins.put({TOOL: Fingerprint("a")})

    async with await AsyncConnection.connect(POSTGRES) as other:
        await other.execute(SQL("SELECT 1 FROM {}.pins FOR UPDATE").format(Identifier(schema)))
        with pytest.raises(StoreError, match="timeout"):
            await pins.approve({TOOL: Fingerprint("b")})

    assert (await pins.get([TOOL]))[TOOL].approved == "a"


@needs_postgres
async def test_connections_that_the_server_closed_are_made_anew(database: Make) -> None:
    made = database(connections=3)
    await asyncio.gather(*(made.run(lambda connection: fetch(connection, "SELECT pg_sleep(.05)")) for _ in range(3)))
    [(mine,)] = await made.run(lambda connection: fetch(connection, "SELECT pg_backend_pid()"))

    async with await AsyncConnection.connect(POSTGRES, autocommit=True) as other:
        await other.execute("SELECT pg_terminate_backend(%s)", (mine,))

    for _ in range(3):
        [(pid,)] = await made.run(lambda connection: fetch(connection, "SELECT pg_backend_pid()"))
        assert pid != mine


@needs_postgres
async def test_what_was_there_before_there_were_stamps_counts_as_used_now(database: Make) -> None:
    old = database(migrations=MIGRATIONS[:2])
    await old.run(lambda it: it.execute("INSERT INTO spend_meters VALUES ('key', 'alice', 5)"))
    await old.run(lambda it: it.execute("INSERT INTO spend_meters VALUES ('day', '2026-01-01 alice', 5)"))
    await old.run(lambda it: it.execute("INSERT INTO tool_statistics VALUES ('git', 'log', 1, 1, 1, 0, 0, 1)"))
    await old.run(lambda connection: connection.execute("INSERT INTO embeddings VALUES ('k', '')"))

    archive = PostgresArchive(database(), SYSTEM_CLOCK)
    used = {record.identity: record.used for record in await held(archive) if hasattr(record, "used")}

    assert used.pop(("key", "alice")) is None
    assert list(used) == [("git", "log"), ("day", "2026-01-01 alice")]
    assert all(abs(each - SYSTEM_CLOCK.time()) < 60 for each in used.values())
    assert await archive.remove("embedding", before=SYSTEM_CLOCK.time() - 60) == 0


@needs_postgres
async def test_expired_sessions_leave_the_database(database: Make, clock: FakeClock) -> None:
    made = database()
    await PostgresSessions(made, clock, ttl=60).save(Session(id="old"))
    clock.advance(61)
    await PostgresSessions(made, clock, ttl=60).save(Session(id="new"))

    assert await made.run(lambda connection: fetch(connection, "SELECT key FROM sessions")) == [("new",)]


@needs_postgres
async def test_rows_that_are_removed_while_they_are_counted_begin_anew(
    database: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, other = database(), database()
    tool, key = PostgresStatistics(made), HabitKey("ann", *TOOL)

    def forgetful(module: ModuleType, table: str) -> None:
        real = module.execute_each

        async def execute_each(connection: AsyncConnection, query: str, rows: Sequence[object]) -> None:
            await real(connection, query, rows)
            if query == module.BEGIN:
                await other.run(lambda it: it.execute(f"DELETE FROM {table}"))  # noqa: S608

        monkeypatch.setattr(module, "execute_each", execute_each)

    forgetful(statistics, "tool_statistics")
    forgetful(habits, "habits")
    for _ in range(2):
        await tool.observe([Outcome(tool=TOOL, success=True, latency_ms=1)])
        await PostgresHabits(made).add({key: np.ones(4, np.float32)})

    assert (await tool.read())[TOOL].calls == 1
    assert (await PostgresHabits(made).read(["ann"]))[key].sums.tolist() == [1.0] * 4


async def test_a_server_that_is_not_there_is_a_clear_error_without_the_password(
    caplog: pytest.LogCaptureFixture,
) -> None:
    port = free_port()
    made = PostgresDatabase(f"postgresql://me:s3cret@127.0.0.1:{port}/board", timeout=0.5)

    with (
        caplog.at_level(logging.DEBUG),
        pytest.raises(StoreError, match=rf"PostgreSQL at 127\.0\.0\.1:{port}/board cannot be used") as caught,
    ):
        await PostgresStatistics(made).read()
    assert "s3cret" not in str(caught.value) + caplog.text


async def test_a_server_that_does_not_answer_is_waited_for_as_long_as_configured() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        made = PostgresDatabase(f"postgresql://me@127.0.0.1:{silent.getsockname()[1]}/board", timeout=0.2)

        async with asyncio.timeout(60):
            with pytest.raises(StoreError, match="cannot be used"):
                await PostgresStatistics(made).read()


class Wire:
    """A proxy before the server, whose connections of the moment can all fall silent."""

    def __init__(self) -> None:
        self.url = ""
        self._tasks = list[asyncio.Task[None]]()
        self._writers = list[asyncio.StreamWriter]()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = conninfo_to_dict(POSTGRES)
        theirs, ours = await asyncio.open_connection(str(server.get("host", "localhost")), server.get("port", 5432))
        self._writers += [writer, ours]
        self._tasks += [asyncio.create_task(self._pumped(*each)) for each in ((reader, ours), (theirs, writer))]

    async def _pumped(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
        writer.close()

    async def fall_silent(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def close(self) -> None:
        await self.fall_silent()
        for writer in self._writers:
            writer.close()


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    made = Wire()
    async with await asyncio.start_server(made.accept, "127.0.0.1", 0) as proxy:
        port = proxy.sockets[0].getsockname()[1]
        made.url = make_conninfo(POSTGRES, host="127.0.0.1", port=port)
        yield made
        await made.close()


@needs_postgres
async def test_connections_that_fall_silent_are_given_up_and_made_anew(schema: str, wire: Wire) -> None:
    made = PostgresDatabase(wire.url, schema=schema, connections=2, timeout=1)
    pins, working, silent = PostgresPins(made), asyncio.Event(), asyncio.Event()

    async def work(connection: AsyncConnection) -> object:
        await fetch(connection, "SELECT 1")
        working.set()
        await silent.wait()
        return await fetch(connection, "SELECT 1")

    try:
        begun = asyncio.create_task(made.run(work))
        await working.wait()
        await pins.version()
        await wire.fall_silent()
        silent.set()

        async with asyncio.timeout(60):
            with pytest.raises(StoreError, match="it has not answered for 2 s"):
                await begun
            assert await pins.version() == 0
            with pytest.raises(StoreError, match="nothing_here"):
                await made.run(lambda connection: fetch(connection, "SELECT * FROM nothing_here"))
    finally:
        await made.close()
        await drop_schema(schema)


@needs_postgres
async def test_a_batch_may_take_longer_than_any_of_its_statements(database: Make) -> None:
    made = database(timeout=2)

    async def work(connection: AsyncConnection) -> None:
        await execute_each(connection, "SELECT pg_sleep(%s)", [(0.5,)] * 8)

    await made.run(work)


@needs_postgres
async def test_what_the_server_refuses_is_no_outage(database: Make, clock: FakeClock) -> None:
    made = database(breaker=store_breaker(clock), timeout=1)
    pins, long = PostgresPins(made), "".join(str(number) for number in range(3_000))
    await pins.put({TOOL: Fingerprint("a")})

    for name in ("a\0b", "a\ud800b", long):
        with pytest.raises(ValueRefused, match="did not do this"):
            await pins.put({TOOL: Fingerprint("b"), ToolId("git", name): Fingerprint("b")})
    with pytest.raises(StoreError, match="statement timeout") as slow:
        await made.run(lambda connection: connection.execute("SELECT pg_sleep(60)"))

    assert (await pins.get([TOOL]))[TOOL].seen == "a"
    assert not isinstance(slow.value, ValueRefused)


@needs_postgres
async def test_a_name_that_the_server_refuses_keeps_no_other_call_from_being_counted(database: Make) -> None:
    store, long = PostgresStatistics(database()), "".join(str(number) for number in range(3_000))
    usage = Usage(store)
    for name in ("a", long, "b", "a\0b", "c"):
        usage.observe(Outcome(tool=ToolId("git", name), success=True, latency_ms=1.0))
    await usage.flush()

    assert {tool.name for tool in await store.read()} == {"", "a", "b", "c"}


@needs_postgres
async def test_a_migration_may_take_longer_than_a_statement(database: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pegboard.stores.postgres.database.GRACE", 0.1)
    slow = Migration("slow", ("SELECT pg_sleep(2.5)",))

    assert await steps(database(migrations=[ONE, slow], timeout=1)) == ["one"]


@needs_postgres
async def test_a_user_who_may_not_make_schemas_uses_a_ready_made_one(schema: str) -> None:
    user = f"user_{schema}"
    made = PostgresDatabase(make_conninfo(POSTGRES, options=f"-c role={user}"), schema=schema)
    names = [Identifier(schema), Identifier(user)]
    async with await AsyncConnection.connect(POSTGRES, autocommit=True) as owner:
        await owner.execute(SQL("CREATE ROLE {}").format(names[1]))
        try:
            await owner.execute(SQL("CREATE SCHEMA {}").format(names[0]))
            await owner.execute(SQL("GRANT USAGE, CREATE ON SCHEMA {} TO {}").format(*names))

            assert await PostgresPins(made).version() == 0
        finally:
            await made.close()
            await drop_schema(schema)
            await owner.execute(SQL("DROP ROLE {}").format(names[1]))


async def test_an_address_that_is_none_is_a_clear_error() -> None:
    with pytest.raises(ConfigError, match=r"postgresql://USER@HOST:PORT/DATABASE"):
        await PostgresStatistics(PostgresDatabase("no address")).read()


@pytest.mark.parametrize("name", ["Big", "a b", 'a"; DROP', "", "1a", "x" * 64])
def test_a_schema_has_a_plain_name(name: str) -> None:
    with pytest.raises(ConfigError, match="not a schema name"):
        PostgresDatabase(POSTGRES, schema=name)


async def test_without_the_package_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(ConfigError, match=r"'psycopg' cannot be used.*pip install 'pegboard\[postgres\]'"):
        await PostgresStatistics(PostgresDatabase(POSTGRES)).read()
