"""What was not used for the configured days is removed from any store."""

from __future__ import annotations

import numpy as np
import pytest

from backends import LASTING, Backend, params
from pegboard.habits import HabitKey
from pegboard.model import Fingerprint, Outcome, Session, ToolId
from pegboard.settings.storage import RetentionSettings
from pegboard.spend_limits import Account, Limits, nano_usd
from pegboard.stores.retention import DAY, RetentionJob
from pegboard.testing import FakeClock
from pegboard.traffic import Seen
from records import held

OLD, NEW = ToolId("git", "old"), ToolId("git", "new")


async def no_definitions(before: float) -> int:
    return 0


def retirement(backend: Backend, **days: float) -> RetentionJob:
    return RetentionJob(backend.archive(), no_definitions, RetentionSettings(**days), backend.clock)


async def use(backend: Backend, tool: ToolId, session: str) -> None:
    await backend.statistics().observe([Outcome(tool=tool, success=True, latency_ms=1)])
    await backend.lessons().add({session: Seen(requests=1.0, conversations=1.0)})
    await backend.habits().add({HabitKey(session, *tool): np.ones(2, np.float32)})
    await backend.pins().put({tool: Fingerprint("a")})
    spend = backend.spend()
    account = Account(session=session, key="alice")
    await spend.settle(await spend.reserve(account, nano_usd(1), Limits()), nano_usd(1))
    await backend.embeddings().put({session: np.zeros(2, np.float32)})


@pytest.mark.requirement("design.retention")
async def test_what_was_not_used_for_the_configured_days_is_removed(lasting: Backend, clock: FakeClock) -> None:
    await use(lasting, OLD, "old")
    clock.advance(30 * DAY)
    await use(lasting, NEW, "new")

    removed = await retirement(lasting, spend=30, statistics=30, lessons=30, habits=30, embeddings=30).once()

    embeddings = 0 if lasting.forgets else 1
    assert removed == {
        "session": 0,
        "hold": 0,
        "meter": 2,
        "statistics": 1,
        "lesson": 1,
        "habit": 1,
        "embedding": embeddings,
        "definition": 0,
        "audit": 0,
    }
    assert (await lasting.statistics().read()).keys() == {NEW}
    assert (await lasting.lessons().read(["old", "new"])).keys() == {"new"}
    assert {key.key for key in await lasting.habits().read(["old", "new"])} == {"new"}
    assert (await lasting.pins().get([OLD, NEW])).keys() == {OLD, NEW}
    [total] = [each for each in await held(lasting.archive()) if each.identity == ("key", "alice")]
    assert total.spent == nano_usd(2)


async def test_a_second_earlier_it_is_kept(lasting: Backend, clock: FakeClock) -> None:
    await use(lasting, OLD, "old")
    before = await held(lasting.archive())
    clock.advance(30 * DAY - 1)

    await retirement(lasting, spend=30, statistics=30, lessons=30, embeddings=30).once()

    assert await held(lasting.archive()) == before


async def test_0_days_keep_it(lasting: Backend, clock: FakeClock) -> None:
    await use(lasting, OLD, "old")
    before = await held(lasting.archive())
    clock.advance(9_999 * DAY)

    await retirement(lasting, spend=0, statistics=0, lessons=0, habits=0, embeddings=0).once()

    assert await held(lasting.archive()) == before


async def test_sessions_and_holds_that_are_over_leave(lasting: Backend, clock: FakeClock) -> None:
    await lasting.sessions().save(Session(id="one"))
    await lasting.spend().reserve(Account(session="one"), nano_usd(1), Limits())
    clock.advance(2 * DAY)

    removed = await retirement(lasting).once()

    assert removed["hold"] == 1
    assert removed["session"] == (0 if lasting.forgets else 1)


@pytest.mark.parametrize("lasting", params(kind for kind in LASTING if not kind.forgets), indirect=True)
@pytest.mark.parametrize(("days", "kept"), [(0.5, {"read", "unread"}), (1.5, {"read"})])
async def test_reading_an_embedding_is_using_it_to_the_day(
    lasting: Backend, clock: FakeClock, days: float, kept: set[str]
) -> None:
    """Redis forgets them by its own clock (tests/stores/redis/test_database.py)."""
    store = lasting.embeddings()
    await store.put({"read": np.zeros(2, np.float32), "unread": np.zeros(2, np.float32)})
    clock.advance(days * DAY)
    await store.get(["read", "missing"])
    clock.advance(1.5 * DAY)

    await retirement(lasting, embeddings=2.5).once()

    assert (await store.get(["read", "unread"])).keys() == kept


async def test_what_goes_on_to_be_added_to_is_kept_whole(lasting: Backend, clock: FakeClock) -> None:
    for _ in range(3):
        await lasting.lessons().add({"talks": Seen(requests=2.0, conversations=1.0)})
        clock.advance(60 * DAY)

    await retirement(lasting).once()
    kept = await lasting.lessons().read(["talks"])
    clock.advance(30 * DAY)
    await retirement(lasting).once()

    assert kept == {"talks": Seen(requests=6.0, conversations=3.0)}
    assert await lasting.lessons().read(["talks"]) == {}
