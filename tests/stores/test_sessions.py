"""What holds for stores of sessions in memory or in a file; `contract` has what holds for all."""

from __future__ import annotations

from pathlib import Path

import pytest

from pegboard.errors import ConfigError
from pegboard.model import Session
from pegboard.stores import MemorySessions, SqliteSessions
from pegboard.testing import FakeClock

TTL = 60.0


async def test_memory_keeps_the_sessions_that_were_used_last(clock: FakeClock) -> None:
    store = MemorySessions(clock, capacity=2)
    for name in "abac":
        if await store.load(name) is None:
            await store.save(Session(id=name))

    assert [bool(await store.load(name)) for name in "abc"] == [True, False, True]


async def test_expired_sessions_leave_the_file(clock: FakeClock, tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "state.sqlite"
    store = SqliteSessions(path, clock, ttl=TTL)
    await store.save(Session(id="old"))
    store.close()
    clock.advance(TTL + 1)
    store = SqliteSessions(path, clock, ttl=TTL)
    await store.save(Session(id="new"))
    store.close()

    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT key FROM sessions").fetchall() == [("new",)]
    connection.close()


async def test_a_file_that_cannot_be_used_is_a_clear_error(clock: FakeClock, tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    path.write_bytes(b"garbage" * 999)
    store = SqliteSessions(path, clock, ttl=TTL)

    with pytest.raises(ConfigError, match=r"state\.sqlite' cannot be used") as caught:
        await store.load("one")
    assert "state_dir" in caught.value.remedy
