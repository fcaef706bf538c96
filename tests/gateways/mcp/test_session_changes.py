"""What a conversation has accumulated: pure changes, and the book that keeps them beside a store."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.errors import ConfigError, SessionConflict
from pegboard.gateways.mcp.gateway import session_changes
from pegboard.gateways.mcp.gateway.session_changes import Change, SessionBook
from pegboard.model import Session, ToolId
from pegboard.stores import MemorySessions
from pegboard.stores.sessions import encode_session
from pegboard.testing import FakeClock
from processes import until

SECRET = "5e55104a11d"
CLIENT = {"protocolVersion": "2025-11-25", "clientInfo": {"name": "opencode", "version": "1"}}


def tools(names: Iterable[str]) -> list[ToolId]:
    return [ToolId("s", name) for name in names]


def enabled(session: Session) -> str:
    """The enabled tools, the most recently used one last."""
    return "".join(tool.name for tool in session.enabled)


def after(*changes: Change, session: Session | None = None) -> Session:
    found = session or Session()
    for change in changes:
        found = change(found)
    return found


class Store(MemorySessions):
    """Remembers what it was given, and fails or loses the race when told to."""

    def __init__(self) -> None:
        super().__init__(FakeClock(1.0))
        self.seen: list[str] = []
        self.broken = False
        self.conflicts = 0
        self.saves = 0
        self.held: asyncio.Event | None = None

    async def load(self, key: str) -> Session | None:
        self.seen.append(key)
        if self.broken:
            raise ConfigError("The disk is full.", remedy="Empty it.")
        found = await super().load(key)
        if self.held is not None:
            await self.held.wait()
        return found

    async def save(self, session: Session) -> Session:
        self.seen.append(session.id + encode_session(session))
        self.saves += 1
        if self.broken:
            raise ConfigError("The disk is full.", remedy="Empty it.")
        if self.conflicts:
            self.conflicts -= 1
            await super().save(replace(session, enabled=(*session.enabled, ToolId("other", "process"))))
            raise SessionConflict
        return await super().save(session)


@pytest.mark.requirement("002.accumulation")
def test_tools_that_searches_found_add_up() -> None:
    found = after(session_changes.enable(tools("ab"), cap=40), session_changes.enable(tools("bc"), cap=40))

    assert set(found.enabled) == set(tools("abc"))


@pytest.mark.requirement("002.accumulation-cap")
def test_beyond_the_cap_the_least_recently_used_leaves() -> None:
    full = after(
        session_changes.enable(tools("a"), cap=3),
        session_changes.enable(tools("b"), cap=3),
        session_changes.enable(tools("c"), cap=3),
    )

    assert enabled(after(session_changes.enable(tools("d"), cap=3), session=full)) == "bcd"
    assert (
        enabled(after(session_changes.use(ToolId("s", "a")), session_changes.enable(tools("d"), cap=3), session=full))
        == "cad"
    )
    assert (
        enabled(
            after(session_changes.enable(tools("a"), cap=3), session_changes.enable(tools("d"), cap=3), session=full)
        )
        == "cad"
    )


def test_of_one_search_that_finds_more_than_the_cap_the_best_stay() -> None:
    assert set(after(session_changes.enable(tools("abcde"), cap=3)).enabled) == set(tools("abc"))
    assert after(session_changes.enable(tools("a"), cap=0)).enabled == ()


def test_using_a_tool_that_is_not_enabled_enables_nothing() -> None:
    assert after(session_changes.use(ToolId("s", "a"))) == Session()


@given(
    steps=st.lists(
        st.one_of(st.lists(st.sampled_from("abcdefgh"), max_size=6), st.sampled_from("abcdefgh")), max_size=20
    ),
    cap=st.integers(0, 6),
)
def test_enabled_tools_never_exceed_the_cap_nor_repeat_and_the_newest_are_there(
    steps: list[list[str] | str], cap: int
) -> None:
    session = Session()
    for step in steps:
        if isinstance(step, str):
            before = set(session.enabled)
            session = session_changes.use(ToolId("s", step))(session)
            assert set(session.enabled) == before
        else:
            session = session_changes.enable(tools(step), cap=cap)(session)
            newest = list(dict.fromkeys(tools(step)))[:cap]
            assert set(newest) <= set(session.enabled)
        assert len(session.enabled) == len(set(session.enabled)) <= cap


def test_a_client_that_was_told_twice_and_never_listed_is_demoted_until_it_lists() -> None:
    once = after(session_changes.noticed)
    twice = after(session_changes.noticed, session=once)

    assert (
        session_changes.is_demoted(Session()),
        session_changes.is_demoted(once),
        session_changes.is_demoted(twice),
    ) == (
        False,
        False,
        True,
    )
    assert not session_changes.is_demoted(session_changes.listed(twice))


async def test_a_session_goes_on_in_another_process() -> None:
    store = MemorySessions(FakeClock(1.0))
    await SessionBook(store).update(SECRET, session_changes.enable(tools("ab"), cap=40))
    await SessionBook(store).update(SECRET, session_changes.introduced(CLIENT))

    found = await SessionBook(store).find(SECRET)

    assert found is not None
    assert set(found.enabled) == set(tools("ab"))
    assert found.client == CLIENT


async def test_a_session_nobody_began_is_found_nowhere_and_is_not_stored_by_asking() -> None:
    store = Store()
    book = SessionBook(store)

    assert await book.find("never") is None
    assert (await book.get("never")).enabled == ()
    assert store.saves == 0


async def test_without_a_session_nothing_is_kept() -> None:
    store = Store()
    book = SessionBook(store)

    changed = await book.update(None, session_changes.enable(tools("a"), cap=4))
    book.touch(None, session_changes.use(ToolId("s", "a")))

    assert enabled(changed) == "a"
    assert await book.get(None) == Session()
    assert store.seen == []


@pytest.mark.requirement("M6")
async def test_sessions_and_endpoints_do_not_see_each_others_tools() -> None:
    store = Store()
    board, tickets = SessionBook(store), SessionBook(store, "tickets")

    await board.update("one", session_changes.enable(tools("a"), cap=4))

    assert enabled(await board.get("two")) == ""
    assert enabled(await tickets.get("one")) == ""
    assert enabled(await board.get("one")) == "a"


async def test_the_store_gets_only_hashes_of_session_ids() -> None:
    store = Store()
    book = SessionBook(store)

    await book.update(SECRET, session_changes.introduced(CLIENT))
    await book.update(SECRET, session_changes.enable(tools("a"), cap=4))
    await book.find(SECRET)
    await book.forget(SECRET)

    assert store.seen
    assert SECRET not in json.dumps(store.seen)


async def test_what_the_store_could_not_take_is_stored_as_soon_as_anybody_asks_for_it_again() -> None:
    store = Store()
    here, there = SessionBook(store), SessionBook(store)
    store.broken = True
    await here.update("one", session_changes.enable(tools("a"), cap=4))
    store.broken = False

    assert await there.latest("one") is None
    assert enabled(await here.latest("one") or Session()) == "a"
    assert enabled(await there.latest("one") or Session()) == "a"


async def test_a_change_that_changes_nothing_is_not_written() -> None:
    store = Store()
    book = SessionBook(store)
    await book.update("one", session_changes.listed)
    assert store.saves == 0
    for _ in range(5):
        await book.update("one", session_changes.introduced(CLIENT))
        await book.update("one", session_changes.answered("echo"))

    assert store.saves == 2


async def test_changes_made_at_once_are_all_kept() -> None:
    book = SessionBook(Store())

    await asyncio.gather(*(book.update("one", session_changes.enable(tools(name), cap=40)) for name in "abcdefgh"))

    assert set((await book.get("one")).enabled) == set(tools("abcdefgh"))


async def test_a_change_is_made_again_where_another_process_was_faster() -> None:
    store = MemorySessions(FakeClock(1.0))
    here, there = SessionBook(store), SessionBook(store)
    await here.update("one", session_changes.enable(tools("a"), cap=40))
    await there.update("one", session_changes.enable(tools("b"), cap=40))
    await here.update("one", session_changes.enable(tools("c"), cap=40))

    assert enabled(await here.get("one")) == "abc"


async def test_a_race_that_is_lost_every_time_ends() -> None:
    store = Store()
    store.conflicts = 1_000

    changed = await SessionBook(store).update("one", session_changes.enable(tools("a"), cap=40))

    assert ToolId("s", "a") in changed.enabled
    assert store.saves == session_changes.MOST_TRIES


async def test_with_a_store_that_fails_the_conversation_goes_on_and_it_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = Store()
    store.broken = True
    book = SessionBook(store)

    with caplog.at_level(logging.WARNING):
        for name in "abc":
            await book.update(SECRET, session_changes.enable(tools(name), cap=40))
            await book.update("another", session_changes.answered("echo"))
        book.touch(SECRET, session_changes.use(ToolId("s", "a")))

    assert enabled(await book.get(SECRET)) == "bca"
    assert [record.message for record in caplog.records] == [
        "Sessions will not survive this process: The disk is full. Empty it."
    ]
    await book.forget(SECRET)
    assert await book.find(SECRET) is None


async def test_a_store_that_works_again_gets_the_whole_session() -> None:
    store = Store()
    book = SessionBook(store)
    store.broken = True
    await book.update("one", session_changes.enable(tools("a"), cap=40))
    store.broken = False
    await book.update("one", session_changes.enable(tools("b"), cap=40))

    assert enabled(await SessionBook(store).get("one")) == "ab"


async def test_a_session_in_use_that_the_store_has_lost_keeps_what_it_has() -> None:
    """Its time ran out in the store, while its client only listed and called."""
    store = Store()
    book = SessionBook(store)
    await book.update("one", session_changes.introduced(CLIENT))
    await book.update("one", session_changes.enable(tools("a"), cap=40))
    store._sessions.clear()

    await book.update("one", session_changes.enable(tools("b"), cap=40))

    stored = await SessionBook(store).get("one")
    assert (enabled(stored), stored.client) == ("ab", CLIENT)


async def test_a_session_that_was_forgotten_in_the_middle_of_a_change_does_not_come_back() -> None:
    store = Store()
    book = SessionBook(store)
    await book.update("one", session_changes.introduced(CLIENT))
    changing = asyncio.create_task(book.update("one", session_changes.enable(tools("a"), cap=40)))
    await book.forget("one")
    await changing

    found = await SessionBook(store).find("one")
    assert found is None or found.client is None, "so that it cannot be continued"


async def test_a_slow_read_does_not_undo_what_was_changed_meanwhile() -> None:
    store = Store()
    book = SessionBook(store)
    store.held = asyncio.Event()
    reading = asyncio.create_task(book.get("one"))
    await until(lambda: bool(store.seen))
    held, store.held = store.held, None
    await book.update("one", session_changes.enable(tools("a"), cap=40))
    held.set()

    assert enabled(await reading) == "a"
    assert enabled(await book.get("one")) == "a"


async def test_only_so_many_sessions_are_in_memory_and_the_others_come_from_the_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session_changes, "LIVE", 3)
    book = SessionBook(MemorySessions(FakeClock(1.0)))
    for number in range(10):
        await book.update(str(number), session_changes.enable(tools("a"), cap=4))

    assert len(book._live) == 3
    assert len(book._locks) <= 3
    assert enabled(await book.get("0")) == "a"


async def test_a_session_that_is_read_all_the_time_stays_in_memory_while_others_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The store keeps it only for so long after its last change."""
    monkeypatch.setattr(session_changes, "LIVE", 3)
    clock = FakeClock(1.0)
    book = SessionBook(MemorySessions(clock, ttl=60.0))
    await book.update("one", session_changes.enable(tools("a"), cap=4))
    clock.advance(61.0)
    for number in range(10):
        assert enabled(await book.get("one")) == "a"
        await book.update(str(number), session_changes.enable(tools("b"), cap=4))
