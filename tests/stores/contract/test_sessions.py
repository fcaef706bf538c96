from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from backends import TTL, Backend
from pegboard.errors import SessionConflict
from pegboard.model import Session, ToolId
from pegboard.testing import FakeClock

FULL = Session(
    id="one",
    enabled=(ToolId("git", "log"), ToolId("time", "now")),
    answered=frozenset({"log"}),
    notices=2,
    client={"protocolVersion": "2025-06-18", "clientInfo": {"name": "é", "version": "1"}},
    watched=("doc://é", "doc://b"),
    level="error",
)


async def test_what_was_saved_is_loaded_with_its_version(backend: Backend) -> None:
    store = backend.sessions()
    saved = await store.save(FULL)

    assert saved == replace(FULL, version=1)
    assert await store.load("one") == saved
    assert await store.load("two") is None


async def test_a_version_that_somebody_else_changed_is_refused(backend: Backend) -> None:
    store = backend.sessions()
    first = await store.save(FULL)
    second = await store.save(replace(first, notices=3))

    for stale in (FULL, first):
        with pytest.raises(SessionConflict):
            await store.save(stale)
    assert await store.load("one") == second


async def test_a_session_that_is_forgotten_can_begin_anew(backend: Backend) -> None:
    store = backend.sessions()
    first = await store.save(FULL)
    await store.forget("one")
    await store.forget("one")

    assert await store.load("one") is None
    with pytest.raises(SessionConflict):
        await store.save(first)
    assert (await store.save(FULL)).version == 1


async def test_a_session_that_was_not_changed_for_long_has_expired(backend: Backend, clock: FakeClock) -> None:
    store = backend.sessions()
    await store.save(FULL)
    clock.advance(TTL - 1)
    assert await store.load("one")
    clock.advance(2)

    assert await store.load("one") is None
    assert (await store.save(FULL)).version == 1


async def test_a_change_gives_a_session_its_whole_time_again(backend: Backend, clock: FakeClock) -> None:
    store = backend.sessions()
    saved = await store.save(FULL)
    clock.advance(TTL - 1)
    await store.save(saved)
    clock.advance(TTL - 1)

    assert await store.load("one")


async def test_another_process_goes_on_with_the_sessions(backend: Backend) -> None:
    saved = await backend.sessions().save(FULL)
    other = backend.sessions()

    assert await other.load("one") == saved
    assert (await other.save(replace(saved, notices=0))).version == 2


async def test_of_several_saves_of_one_version_exactly_one_is_taken(backend: Backend) -> None:
    stores = [backend.sessions() for _ in range(8)]
    saved = await stores[0].save(FULL)
    versions = [replace(saved, notices=number) for number in range(8)]

    done = await asyncio.gather(
        *(store.save(each) for store, each in zip(stores, versions, strict=True)), return_exceptions=True
    )

    taken = [each for each in done if isinstance(each, Session)]
    assert len(taken) == 1
    assert sum(isinstance(each, SessionConflict) for each in done) == 7
    assert await stores[0].load("one") == taken[0]


async def test_of_several_sessions_that_begin_at_once_under_one_id_exactly_one_does(backend: Backend) -> None:
    done = await asyncio.gather(*(backend.sessions().save(FULL) for _ in range(8)), return_exceptions=True)

    assert sum(isinstance(each, Session) for each in done) == 1
    assert sum(isinstance(each, SessionConflict) for each in done) == 7


async def test_changes_by_many_tasks_that_repeat_after_a_conflict_all_come_to_stand(backend: Backend) -> None:
    await backend.sessions().save(replace(FULL, notices=0))

    async def count() -> None:
        store = backend.sessions()
        for _ in range(5):
            while True:
                session = await store.load("one")
                assert session
                try:
                    await store.save(replace(session, notices=session.notices + 1))
                    break
                except SessionConflict:
                    continue

    await asyncio.gather(*(count() for _ in range(6)))

    session = await backend.sessions().load("one")
    assert session
    assert (session.notices, session.version) == (30, 31)
