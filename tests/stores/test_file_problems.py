"""A file that cannot be used any more is known to be so, until something can be written again."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from pegboard.errors import ConfigError
from pegboard.model import Session
from pegboard.settings import Settings
from pegboard.stores import SqliteSessions
from pegboard.stores.sqlite.database import SqliteFile
from pegboard.stores.state import open_state
from pegboard.testing import FakeClock


@pytest.mark.requirement("D13")
async def test_a_damaged_file_is_amiss(clock: FakeClock, tmp_path: Path) -> None:
    (tmp_path / "state.sqlite").write_bytes(b"this is no database" * 1000)
    state = open_state(Settings(state_dir=tmp_path, cache_dir=tmp_path), clock)
    assert state.amiss() == ""

    with pytest.raises(ConfigError):
        await state.sessions.load("a")

    assert state.amiss() == "The file state.sqlite cannot be used: file is not a database."
    assert str(tmp_path) not in state.amiss(), "it is for everybody to read"
    await state.close()


@pytest.mark.requirement("D13")
async def test_a_full_disk_is_amiss_until_something_can_be_written_again(clock: FakeClock, tmp_path: Path) -> None:
    sessions = SqliteSessions(tmp_path / "state.sqlite", clock, ttl=60)
    file: SqliteFile = sessions._file
    saved = await sessions.save(Session(id="a"))

    def fill(connection: sqlite3.Connection) -> None:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")

    await file.run(fill)
    with pytest.raises(ConfigError, match="full"):
        await sessions.save(Session(id="b", client={"name": "x" * 100_000}))
    assert sessions.amiss == "The file state.sqlite cannot be used: database or disk is full."
    assert await sessions.load("a") is not None
    assert sessions.amiss, "that it can be read says nothing"

    await file.run(lambda connection: connection.execute("PRAGMA max_page_count = 1000000").fetchone())
    await sessions.save(saved)
    assert sessions.amiss == ""
    sessions.close()
