"""Decisions that were kept before there were sums of them get their sums when the store is opened."""

from __future__ import annotations

import random
from pathlib import Path
from uuid import uuid4

import pytest

from pegboard.activity_entries import GROUPINGS, ActivityEntry, ScoredTool, scores_of
from pegboard.protocols import Activity
from pegboard.stores import MemoryActivity, SqliteActivity
from pegboard.stores.postgres import PostgresActivity, PostgresDatabase
from pegboard.stores.postgres.database import MIGRATIONS, execute_each
from pegboard.stores.sql.activity_rows import FIRST_FIELDS, stored
from pegboard.stores.sqlite.activity import ACTIVITY_MIGRATIONS
from pegboard.stores.sqlite.database import SqliteFile
from services import POSTGRES, drop_schema, needs_postgres

DAY = 86_400.0


def kept_before() -> list[ActivityEntry]:
    drawn = random.Random(1)
    return [
        ActivityEntry(
            id=f"{number:03}",
            at=drawn.uniform(20_000, 20_003) * DAY,
            door=drawn.choice(("llm", "mcp")),
            kind="search",
            key=drawn.choice(("", "ann", "bob")),
            scores=scores_of([ScoredTool("a/b", 0.5, True)]),
            called=tuple(drawn.choices(("a/b", "c/d"), k=drawn.randrange(4))),
            error=drawn.choice(("", "a_code")),
            tokens_before=drawn.randrange(9_000),
        )
        for number in range(80)
    ]


def old_rows(entries: list[ActivityEntry]) -> list[tuple[object, ...]]:
    return [(*row[: len(FIRST_FIELDS)], row[-1]) for row in stored(entries)]


def insert(mark: str) -> str:
    marks = ", ".join([mark] * (len(FIRST_FIELDS) + 1))
    return f"INSERT INTO activity ({', '.join(FIRST_FIELDS)}, day) VALUES ({marks})"  # noqa: S608


async def check(store: Activity, entries: list[ActivityEntry]) -> None:
    await (scan := MemoryActivity()).put(entries)
    assert await store.by_day(0) == await scan.by_day(0)
    for grouping in GROUPINGS:
        assert await store.by(grouping, 0, 99) == await scan.by(grouping, 0, 99)
    assert await store.get("007") == await scan.get("007")


@pytest.mark.requirement("observability.sums")
async def test_decisions_in_a_file_get_their_sums(tmp_path: Path) -> None:
    entries, path = kept_before(), tmp_path / "activity.sqlite"
    old = SqliteFile(path, ACTIVITY_MIGRATIONS[:1], remedy="")
    old.run_now(lambda connection: connection.executemany(insert("?"), old_rows(entries)) and None)
    old.close()

    store = SqliteActivity(path)
    await check(store, entries)
    store.close()


@pytest.mark.requirement("observability.sums")
@needs_postgres
async def test_decisions_in_postgresql_get_their_sums() -> None:
    entries, schema = kept_before(), f"test_{uuid4().hex}"
    first = [step.name for step in MIGRATIONS].index("activity") + 1
    old = PostgresDatabase(POSTGRES, schema=schema, migrations=MIGRATIONS[:first], timeout=30)
    database = PostgresDatabase(POSTGRES, schema=schema, timeout=30)
    try:
        await old.run(lambda connection: execute_each(connection, insert("%s"), old_rows(entries)))
        await check(PostgresActivity(database), entries)
    finally:
        await old.close()
        await database.close()
        await drop_schema(schema)
