"""What only a table in PostgreSQL can do: be shared, be away and come back, lack the extension."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import numpy as np
import psycopg
import pytest

from pegboard import Catalog, ToolId
from pegboard.compose import default_parts
from pegboard.errors import ConfigError, StoreError
from pegboard.protocols import Filter
from pegboard.retrieval.index.exact import ExactIndex
from pegboard.retrieval.index.pgvector import PgvectorDatabase, PgvectorIndex
from pegboard.routing_board import RoutingBoard
from pegboard.settings import load_settings
from pegboard.testing import FakeClock, FakeEncoder
from pegboard_bench.index.postgres import PostgresServer
from pgvector_server import needs_pgvector
from services import POSTGRES, needs_postgres

IDS = [ToolId(f"server {number % 30}", f"tool {number}") for number in range(1_200)]
ROWS = np.random.default_rng(1).normal(size=(len(IDS), 16)).astype(np.float32)
ROWS /= np.linalg.norm(ROWS, axis=1, keepdims=True)
QUERIES = np.random.default_rng(2).normal(size=(20, 16)).astype(np.float32)
QUERY = "book a repair slot for my bicycle"
SECRET = "password-that-nobody-else-may-see"


@needs_pgvector
@pytest.mark.requirement("design.index-down")
async def test_while_postgresql_is_down_words_answer_and_the_table_is_used_again_when_it_is_back(
    pgvector: PostgresServer,
    town: Catalog,
    board_of: Callable[..., RoutingBoard],
    clock: FakeClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    board = board_of(town, index="pgvector", pgvector={"url": pgvector.url})
    before = await board.scores(QUERY)
    caplog.set_level(logging.WARNING)
    pgvector.stop()
    down = [await board.scores(QUERY) for _ in range(3)]
    pgvector.start()
    clock.advance(2)
    await board.scores(QUERY)
    after = await board.scores(QUERY)

    assert before is not None
    assert after is not None
    assert "cosine" in before.parts
    assert all(scores is not None and set(scores.parts) == {"bm25", "name"} for scores in down)
    np.testing.assert_allclose(after.values, before.values, atol=1e-6)
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(said) == 2
    assert "tools are ranked by words alone" in said[0]
    assert "answers again" in said[1]


@needs_pgvector
async def test_a_restart_between_two_searches_is_not_felt(pgvector: PostgresServer) -> None:
    index = PgvectorIndex(PgvectorDatabase(pgvector.url), ["restarted"])
    await index.add(IDS[:10], ROWS[:10])
    pgvector.stop()
    pgvector.start()

    ((best, _),) = (await index.search(ROWS[3:4], 1))[0]

    assert best == IDS[3]


@needs_pgvector
async def test_two_replicas_that_fill_one_board_at_once_share_one_table(pgvector_url: str) -> None:
    name = uuid4().hex
    replicas = [PgvectorIndex(PgvectorDatabase(pgvector_url, timeout=60), ["board", name]) for _ in range(2)]
    backwards = slice(None, None, -1)

    await asyncio.gather(replicas[0].add(IDS, ROWS), replicas[1].add(IDS[backwards], ROWS[backwards]))
    await asyncio.gather(replicas[0].remove(IDS[:300]), replicas[1].remove(IDS[299::-1]), replicas[0].add(IDS, ROWS))

    assert await replicas[0].ids() == await replicas[1].ids()
    assert await replicas[0].ids() >= frozenset(IDS[300:])


@needs_pgvector
async def test_what_is_there_with_the_same_vector_is_not_sent_again(
    pgvector_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = uuid4().hex
    await PgvectorIndex(PgvectorDatabase(pgvector_url, timeout=60), [name]).add(IDS, ROWS)
    written: list[object] = []
    monkeypatch.setattr("pegboard.retrieval.index.pgvector._written", lambda row: written.append(row) or "[]")
    again = PgvectorIndex(PgvectorDatabase(pgvector_url, timeout=60), [name])

    await again.add(IDS, ROWS)

    assert written == []


@needs_pgvector
async def test_the_graph_finds_nearly_all_that_an_exact_search_finds_and_keeps_rights(
    pgvector_database: PgvectorDatabase,
) -> None:
    """Its plan is looked at, since an exact one would pass too."""
    index = PgvectorIndex(pgvector_database, [uuid4().hex], approximate_above=100)
    oracle = ExactIndex(16)
    await index.add(IDS, ROWS)
    oracle.add(IDS, ROWS)
    half = Filter(servers=frozenset(f"server {number}" for number in range(15)), excluded=frozenset(IDS[::7]))

    for where in (None, half):
        found, expected = await index.search(QUERIES, 10, where), oracle.search(QUERIES, 10, where)
        assert all(where is None or where.passes(tool) for row in found for tool, _ in row)
        shares = [len(dict(one).keys() & dict(other).keys()) / 10 for one, other in zip(found, expected, strict=True)]
        assert np.mean(shares) >= 0.97

    def plan(connection: psycopg.Connection) -> str:
        connection.execute("SET LOCAL enable_seqscan = off")
        query = f"EXPLAIN {index._near('')}"
        return str(connection.execute(query, {"query": str(ROWS[0].tolist()), "k": 10}).fetchall())  # type: ignore[arg-type]

    assert "_vector_idx" in await pgvector_database.run(plan)


@needs_pgvector
async def test_a_table_that_was_dropped_is_an_error_once_and_made_anew(pgvector_database: PgvectorDatabase) -> None:
    index = PgvectorIndex(pgvector_database, [uuid4().hex])
    await index.add(IDS[:3], ROWS[:3])
    await pgvector_database.run(lambda connection: connection.execute(f"DROP TABLE {index._table}"))

    with pytest.raises(StoreError, match="does not exist"):
        await index.search(ROWS[:1], 1)
    assert await index.ids() == frozenset()
    await index.add(IDS[:3], ROWS[:3])

    assert [tool for tool, _ in (await index.search(ROWS[:1], 1))[0]] == IDS[:1]


@needs_pgvector
async def test_tables_that_nobody_uses_any_more_are_found_and_dropped_as_the_documentation_says(
    pgvector_database: PgvectorDatabase,
) -> None:
    board = f"_own-{uuid4().hex}"
    index = PgvectorIndex(pgvector_database, [board, "space"])
    await index.add(IDS[:3], ROWS[:3])
    page = (Path(__file__).parents[3] / "docs/vectors.md").read_text(encoding="utf-8")
    listed, drop = page.partition("```sql\n")[2].partition("```")[0].strip().rstrip(";").split(";\n")
    [(name, *_)] = await pgvector_database.run(
        lambda connection: [row for row in connection.execute(listed) if row[1] == f"{board}.space"]
    )
    example = drop.rpartition(".")[2]

    await pgvector_database.run(lambda connection: connection.execute(drop.replace(example, name)))

    with pytest.raises(StoreError, match="does not exist"):
        await index.search(ROWS[:1], 1)


@needs_pgvector
async def test_a_statement_that_takes_too_long_is_given_up(pgvector_url: str) -> None:
    database = PgvectorDatabase(pgvector_url, timeout=0.2)

    async with asyncio.timeout(50):
        with pytest.raises(StoreError, match=r"no answer within 0\.2 s"):
            await database.run(lambda connection: connection.execute("SELECT pg_sleep(60)"))


@needs_postgres
async def test_a_server_without_the_extension_is_an_error_that_says_what_to_install() -> None:
    with psycopg.connect(POSTGRES) as connection:
        if connection.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'").fetchone():
            return  # this server has it; the one of tests of stores need not
    index = PgvectorIndex(PgvectorDatabase(POSTGRES), ["nowhere"])

    with pytest.raises(StoreError, match="does not have pgvector") as caught:
        await index.ids()

    assert "Install pgvector" in str(caught.value)


async def test_a_password_is_in_no_error() -> None:
    url = f"postgresql://user:{SECRET}@127.0.0.1:9/nothing"
    settings = load_settings(index="pgvector", pgvector={"url": url})
    index = default_parts(settings, encoder=FakeEncoder()).index("")
    assert index is not None

    with pytest.raises(StoreError) as caught:
        await index.ids()

    assert "127.0.0.1:9/nothing" in str(caught.value)
    assert SECRET not in str(caught.value) + repr(settings)
    assert caught.value.__cause__ is None


def test_without_an_address_that_of_the_state_is_taken_or_asked_for() -> None:
    def index(**said: object) -> object:
        return default_parts(load_settings(index="pgvector", index_recall=0, **said), encoder=FakeEncoder()).index("")

    assert isinstance(index(state="postgresql://127.0.0.1:9/state"), PgvectorIndex)
    with pytest.raises(ConfigError, match="needs the address"):
        index()


def test_boards_and_spaces_of_vectors_have_tables_of_their_own() -> None:
    database = PgvectorDatabase("postgresql://127.0.0.1:9/x")
    tables = {PgvectorIndex(database, names)._table for names in (("", "a"), ("", "b"), ("x", "a"))}

    assert len(tables) == 3
    assert PgvectorIndex(database, ("x", "a"))._table in tables
