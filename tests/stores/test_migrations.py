from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pegboard.averages import PRIOR, SMOOTHING, after
from pegboard.clock import SYSTEM_CLOCK
from pegboard.errors import ConfigError
from pegboard.model import Outcome, ToolId
from pegboard.stores import SqliteArchive, SqliteStatistics
from pegboard.stores.database import Migration
from pegboard.stores.sqlite.cache import EMBEDDING_MIGRATIONS
from pegboard.stores.sqlite.database import STATE_MIGRATIONS, SqliteFile
from records import held

ONE = Migration("one", ("CREATE TABLE steps (name TEXT)", "INSERT INTO steps VALUES ('one')"))
TWO = Migration("two", ("INSERT INTO steps VALUES ('two')",))
BROKEN = Migration("two", ("INSERT INTO steps VALUES ('half')", "no statement"))


def steps(file: SqliteFile) -> list[str]:
    def read(connection: sqlite3.Connection) -> list[str]:
        return [name for (name,) in connection.execute("SELECT name FROM steps ORDER BY rowid")]

    try:
        return file.run_now(read)
    finally:
        file.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.sqlite"


def test_each_step_is_applied_once_and_in_order(path: Path) -> None:
    assert steps(SqliteFile(path, [ONE], remedy="")) == ["one"]
    assert steps(SqliteFile(path, [ONE, TWO], remedy="")) == ["one", "two"]
    assert steps(SqliteFile(path, [ONE, TWO], remedy="")) == ["one", "two"]


def test_an_older_program_refuses_a_newer_file(path: Path) -> None:
    steps(SqliteFile(path, [ONE, TWO], remedy=""))

    with pytest.raises(ConfigError, match=r"s\.sqlite' was changed by a newer version of Pegboard \('two'\)\. Upgrade"):
        steps(SqliteFile(path, [ONE], remedy=""))


def test_a_step_that_fails_leaves_nothing_half_done(path: Path) -> None:
    steps(SqliteFile(path, [ONE], remedy=""))

    with pytest.raises(ConfigError, match="cannot be used"):
        steps(SqliteFile(path, [ONE, BROKEN], remedy=""))

    assert steps(SqliteFile(path, [ONE, TWO], remedy="")) == ["one", "two"]


async def test_counts_from_before_there_were_averages_are_kept(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE TABLE tool_statistics (server TEXT, name TEXT, calls INTEGER NOT NULL, "
            "successes INTEGER NOT NULL, PRIMARY KEY (server, name)) WITHOUT ROWID"
        )
        connection.execute("INSERT INTO tool_statistics VALUES ('git', 'log', 7, 6)")
    store = SqliteStatistics(path)
    tool = ToolId("git", "log")

    before = (await store.read())[tool]
    outcome = Outcome(tool=tool, success=True, latency_ms=100)
    await store.observe([outcome])

    assert (before.calls, before.successes, before.latency) == (7, 6, PRIOR.latency)
    assert (await store.read())[tool] == after(before, outcome, SMOOTHING)
    store.close()


async def test_what_was_there_before_there_were_stamps_counts_as_used_now(path: Path) -> None:
    old, cache = (
        SqliteFile(path, STATE_MIGRATIONS[:3], remedy=""),
        SqliteFile(path.with_name("c"), EMBEDDING_MIGRATIONS[:1], remedy=""),
    )
    old.run_now(lambda file: file.execute("INSERT INTO spend_meters VALUES ('key', 'alice', 5)").close())
    old.run_now(lambda file: file.execute("INSERT INTO spend_meters VALUES ('day', '2026-01-01 alice', 5)").close())
    old.run_now(lambda file: file.execute("INSERT INTO tool_statistics VALUES ('git','log',1,1,1,0,0,1)").close())
    cache.run_now(lambda file: file.execute("INSERT INTO embeddings VALUES ('k', '')").close())
    for file in (old, cache):
        file.close()

    archive = SqliteArchive(path, path.with_name("c"), SYSTEM_CLOCK)
    used = {record.identity: record.used for record in await held(archive) if hasattr(record, "used")}

    assert used.pop(("key", "alice")) is None
    assert list(used) == [("git", "log"), ("day", "2026-01-01 alice")]
    assert all(abs(each - SYSTEM_CLOCK.time()) < 60 for each in used.values())
    assert await archive.remove("embedding", before=SYSTEM_CLOCK.time() - 60) == 0
    archive.close()


async def test_averages_that_were_never_kept_are_exported_as_the_first_values(path: Path) -> None:
    old = SqliteFile(path, STATE_MIGRATIONS[:2], remedy="")
    old.run_now(
        lambda file: file.execute("INSERT INTO tool_statistics VALUES ('git','log',7,6,NULL,NULL,NULL,NULL)").close()
    )
    old.close()
    archive = SqliteArchive(path, path.with_name("c"), SYSTEM_CLOCK)

    [record] = [record async for record in archive.read("statistics")]

    assert (record.calls, record.latency, record.success) == (7, PRIOR.latency, PRIOR.success)
    archive.close()
