"""One contract for every store of sessions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pegboard.errors import ConfigError, SessionConflict
from pegboard.model import Session, ToolId
from pegboard.stores import MemorySessions, SqliteSessions
from pegboard.testing import FakeClock

TTL = 60.0
FULL = Session(
    id="one",
    enabled=(ToolId("git", "log"), ToolId("time", "now")),
    answered=frozenset({"log"}),
    notices=2,
    client={"protocolVersion": "2025-06-18", "clientInfo": {"name": "é", "version": "1"}},
)


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path) -> Iterator[Any]:
    if request.param == "memory":
        yield MemorySessions(clock, ttl=TTL)
        return
    store = SqliteSessions(tmp_path / "state.sqlite", clock, ttl=TTL)
    yield store
    store.close()


async def test_what_was_saved_is_loaded_with_its_version(store: Any) -> None:
    saved = await store.save(FULL)

    assert saved == replace(FULL, version=1)
    assert await store.load("one") == saved
    assert await store.load("two") is None


async def test_a_version_that_somebody_else_changed_is_refused(store: Any) -> None:
    first = await store.save(FULL)
    second = await store.save(replace(first, notices=3))

    for stale in (FULL, first):
        with pytest.raises(SessionConflict):
            await store.save(stale)
    assert await store.load("one") == second


async def test_a_session_that_is_forgotten_can_begin_anew(store: Any) -> None:
    first = await store.save(FULL)
    await store.forget("one")
    await store.forget("one")

    assert await store.load("one") is None
    with pytest.raises(SessionConflict):
        await store.save(first)
    assert (await store.save(FULL)).version == 1


async def test_a_session_that_was_not_changed_for_long_has_expired(store: Any, clock: FakeClock) -> None:
    await store.save(FULL)
    clock.advance(TTL - 1)
    assert await store.load("one")
    clock.advance(2)

    assert await store.load("one") is None
    assert (await store.save(FULL)).version == 1


async def test_a_change_gives_a_session_its_whole_time_again(store: Any, clock: FakeClock) -> None:
    saved = await store.save(FULL)
    clock.advance(TTL - 1)
    await store.save(saved)
    clock.advance(TTL - 1)

    assert await store.load("one")


async def test_another_process_goes_on_with_the_sessions_of_a_file(
    clock: FakeClock, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    one, other = (SqliteSessions(tmp_path / "state.sqlite", clock, ttl=TTL) for _ in range(2))
    request.addfinalizer(one.close)
    request.addfinalizer(other.close)
    saved = await one.save(FULL)

    assert await other.load("one") == saved
    assert (await other.save(replace(saved, notices=0))).version == 2


async def test_memory_keeps_the_sessions_that_changed_last(clock: FakeClock) -> None:
    store = MemorySessions(clock, capacity=2)
    for name in "abc":
        await store.save(Session(id=name))

    assert [bool(await store.load(name)) for name in "abc"] == [False, True, True]


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
