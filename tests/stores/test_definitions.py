from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pegboard.errors import ConfigError
from pegboard.protocols import Definitions, Listing
from pegboard.stores import MemoryDefinitions, SqliteDefinitions

LISTING = Listing(
    introduction={"serverInfo": {"name": "s", "version": "1"}, "instructions": "hällo 世界"},
    pages=(
        {"tools": [{"name": "a", "inputSchema": {"big": 2**60, "x": [None, 0.1]}}], "nextCursor": ""},
        {"tools": []},
    ),
    protocol="2025-11-25",
)


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Definitions:
    return MemoryDefinitions() if request.param == "memory" else SqliteDefinitions(tmp_path / "new" / "d.sqlite")


async def test_a_listing_comes_back_as_it_was(store: Definitions) -> None:
    await store.put("key", LISTING)
    assert await store.get("key") == LISTING
    assert await store.get("other key") is None


async def test_the_latest_listing_is_the_one_that_counts(store: Definitions) -> None:
    await store.put("key", LISTING)
    newer = Listing(introduction={}, pages=(), protocol="2026-07-28")
    await store.put("key", newer)
    assert await store.get("key") == newer


async def test_another_process_reads_what_was_written(tmp_path: Path) -> None:
    await SqliteDefinitions(tmp_path / "d.sqlite").put("key", LISTING)
    assert await SqliteDefinitions(tmp_path / "d.sqlite").get("key") == LISTING


async def test_a_file_that_is_no_database_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "d.sqlite"
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(ConfigError, match=r"d\.sqlite.*Delete the file"):
        await SqliteDefinitions(path).get("key")


@pytest.mark.parametrize("text", ["{", "[]", '{"pages": []}'])
async def test_an_entry_that_is_no_listing_is_an_error_that_names_the_file(tmp_path: Path, text: str) -> None:
    store = SqliteDefinitions(tmp_path / "d.sqlite")
    await store.put("key", LISTING)
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("UPDATE definitions SET listing = ?", (text,))
    with pytest.raises(ConfigError, match=r"d\.sqlite.*holds an invalid listing"):
        await store.get("key")
