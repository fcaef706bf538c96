"""Everything a store keeps, record by record; the same from one backend to the next."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from backends import HOLD, LASTING, Another, Backend, InSqlite, params
from pegboard.errors import SpendLimitReached
from pegboard.habits import HabitKey
from pegboard.model import Fingerprint, Outcome, Pin, Session, ToolId
from pegboard.records import (
    KINDS,
    EmbeddingRecord,
    HoldRecord,
    Kind,
    LessonRecord,
    MeterRecord,
    PinRecord,
    Record,
    SessionRecord,
    SessionState,
    StatisticsRecord,
    SwitchRecord,
)
from pegboard.spend_limits import Account, Limits, nano_usd
from pegboard.stores.redis import record_stores
from pegboard.stores.retention import DAY, LATE
from pegboard.stores.sessions import session_key
from pegboard.stores.sql import tables
from pegboard.testing import FakeClock
from pegboard.traffic import Seen
from records import everything, held

LOG, NOW = ToolId("git", "log"), ToolId("time", "now")
ONE = Account(session="one", key="alice")
OFF = SwitchRecord(server="git", name="", definition="", who="ann", at=1_000.5)
A, B = (Fingerprint(letter * 64) for letter in "ab")


async def fill(backend: Backend) -> None:
    """One of everything, as the stores write it."""
    session = Session(id=session_key("one"), enabled=(LOG, NOW), answered=frozenset({"log"}), client={"name": "é\n"})
    await backend.sessions().save(await backend.sessions().save(session))
    await backend.statistics().observe([Outcome(tool=tool, success=True, latency_ms=10 / 3) for tool in (NOW, LOG)])
    await backend.lessons().add({"talks": Seen(requests=3.0, conversations=1.0, asked=100 / 3)})
    await backend.habits().add({HabitKey("ann:1", "git", "log"): np.array([1.5, -0.25], np.float32)})
    spend = backend.spend()
    await spend.settle(await spend.reserve(ONE, nano_usd(1), Limits()), nano_usd("0.123456789"))
    await spend.reserve(ONE, nano_usd(2), Limits())
    await backend.pins().put({LOG: A, NOW: A})
    await backend.pins().put({LOG: B})
    await backend.archive().write([OFF])
    await backend.embeddings().put({"k2": np.array([1.5, -1 / 3], np.float32), "k1": np.zeros(2, np.float32)})


async def of(backend: Backend, kind: Kind) -> list[Record]:
    return [record async for record in backend.archive().read(kind)]


async def test_records_after_a_key_are_read_alone(lasting: Backend, clock: FakeClock) -> None:
    spend = lasting.spend()
    for _ in range(3):
        await spend.settle(await spend.reserve(ONE, nano_usd(1), Limits()), nano_usd(1))
        clock.advance(DAY)

    async def names(*after: str) -> list[str]:
        return [
            record.name
            async for record in lasting.archive().read("meter", after=after)
            if isinstance(record, MeterRecord)
        ]

    later = ["1970-01-03 alice", "alice", '["alice", "one"]']
    assert await names("day", "1970-01-02") == ["1970-01-02 alice", *later]
    assert await names("day", "1970-01-02 alice") == later
    assert await names("key", "alice") == later[-1:]
    assert await names("session", "z") == []


async def test_records_say_what_the_stores_hold_in_the_order_of_their_keys(lasting: Backend) -> None:
    await fill(lasting)

    session, first, second, lesson, habit, *meters, hold, changed, same, off, k1, k2 = await held(lasting.archive())

    assert session == SessionRecord(
        key=session_key("one"),
        version=2,
        expires=1_060.0,
        state=SessionState(
            enabled=[["git", "log"], ["time", "now"]], answered=["log"], notices=0, client={"name": "é\n"}
        ),
    )
    assert [(each.name, each.calls, each.used) for each in (first, second)] == [
        ("log", 1, 1_000.0),
        ("now", 1, 1_000.0),
    ]
    assert (lesson.key, lesson.used) == ("talks", 1_000.0)
    assert (lesson.requests, lesson.conversations, lesson.asked, lesson.alike) == (3, 1, 100 / 3, 0)
    assert (habit.identity, habit.used) == (("ann:1", "git", "log"), 1_000.0)
    assert np.frombuffer(habit.sums, "<f4").tolist() == [1.5, -0.25]
    assert [(each.kind, each.name, each.spent, each.used) for each in meters] == [
        ("day", "1970-01-01 alice", 123_456_789, 1_000.0),
        ("key", "alice", 123_456_789, None),
        ("session", '["alice", "one"]', 123_456_789, 1_000.0),
    ]
    assert (hold.session, hold.caller, hold.day) == ('["alice", "one"]', "alice", "1970-01-01 alice")
    assert (hold.amount, hold.expires) == (nano_usd(2), 1_000.0 + HOLD)
    assert changed == PinRecord(server="git", name="log", approved=A, seen=B)
    assert same == PinRecord(server="time", name="now", approved=A, seen=A)
    assert off == OFF
    assert [k1.key, k2.key] == ["k1", "k2"]
    assert np.frombuffer(k2.vector, np.float32).tolist() == [1.5, float(np.float32(-1 / 3))]


async def test_a_store_says_where_it_is_what_it_holds_and_how_much_that_takes(lasting: Backend) -> None:
    await fill(lasting)

    about = await lasting.archive().about()

    expected = {"session": 1, "statistics": 2, "lesson": 1, "habit": 1, "meter": 3, "hold": 1, "pin": 2, "switch": 1}
    expected["embedding"] = 2
    assert (about.counts, about.bytes > 100, float(about.version[:3]) > 3) == (expected, True, True)
    assert any(name.startswith("last use") for name in about.migrations)
    assert about.replicas == (None if about.backend == "sqlite" else 0)


@pytest.mark.parametrize("target", params(LASTING))
async def test_what_is_carried_to_another_store_is_there_as_it_was(
    lasting: Backend, target: type[Backend], another: Another
) -> None:
    await fill(lasting)
    records, there = await held(lasting.archive()), await another(target)

    taken = await there.archive().write(records)

    assert taken == len(records) == 14
    assert await held(there.archive()) == records
    loaded = await there.sessions().load(session_key("one"))
    assert loaded == await lasting.sessions().load(session_key("one"))
    assert await there.statistics().read() == await lasting.statistics().read()
    assert await there.lessons().read(["talks"]) == await lasting.lessons().read(["talks"]) != {}
    assert await there.pins().get([LOG]) == {LOG: Pin(approved=A, seen=B)}
    with pytest.raises(SpendLimitReached, match=r"\$2\.123456789 are spent or reserved"):
        await there.spend().reserve(ONE, nano_usd(1), Limits(key=nano_usd(3)))


async def test_what_was_carried_over_goes_on(lasting: Backend, another: Another) -> None:
    spend = lasting.spend()
    reservation = await spend.reserve(ONE, nano_usd(2), Limits())
    saved = await lasting.sessions().save(Session(id="one"))
    there = await another(InSqlite)

    await there.archive().write(await held(lasting.archive()))
    await there.spend().settle(reservation, nano_usd(1))

    assert (await there.sessions().save(replace(saved, notices=1))).version == 2
    assert {each.spent for each in await of(there, "meter")} == {nano_usd(1)}
    assert await of(there, "hold") == []


async def test_a_second_time_nothing_happens(lasting: Backend) -> None:
    await fill(lasting)
    records = await held(lasting.archive())

    assert await lasting.archive().write(records) == 0
    assert await held(lasting.archive()) == records


def statistics(calls: int, used: float) -> StatisticsRecord:
    return StatisticsRecord(
        server="git", name="log", calls=calls, successes=0, success=0.5, variance=0, failure=0, latency=1, used=used
    )


def lesson(requests: float, used: float) -> LessonRecord:
    return LessonRecord(key="talks", used=used, **asdict(Seen(requests=requests)))


def session(version: int, expires: float) -> SessionRecord:
    state = SessionState(enabled=[], answered=[], notices=version, client=None)
    return SessionRecord(key="one", version=version, expires=expires, state=state)


def meter(spent: int) -> MeterRecord:
    return MeterRecord(kind="key", name="alice", spent=spent, used=None)


@pytest.mark.parametrize(
    ("worse", "better"),
    [
        (statistics(9, 1.0), statistics(2, 2.0)),
        (lesson(9.0, 1.0), lesson(2.0, 2.0)),
        (session(9, 2_000.5), session(2, 2_000.75)),
        (meter(5), meter(7)),
    ],
    ids=["later call", "later turn", "later end", "more spent"],
)
async def test_of_two_records_of_one_key_the_better_stays(lasting: Backend, worse: Record, better: Record) -> None:
    archive = lasting.archive()

    assert await archive.write([worse]) == 1
    assert await archive.write([better]) == 1
    assert await archive.write([worse]) == 0

    assert await held(lasting.archive()) == [better]


@pytest.mark.parametrize(
    ("there", "other"),
    [
        (
            PinRecord(server="git", name="log", approved="a", seen="a"),
            PinRecord(server="git", name="log", approved="b", seen="b"),
        ),
        (EmbeddingRecord(key="k", vector=b"1234"), EmbeddingRecord(key="k", vector=b"5678")),
        (
            HoldRecord(reservation="r", session="s", caller="c", day="d", amount=1, expires=2e3),
            HoldRecord(reservation="r", session="s", caller="c", day="d", amount=2, expires=3e3),
        ),
    ],
    ids=["pin", "embedding", "hold"],
)
async def test_what_was_approved_held_or_embedded_here_stays(lasting: Backend, there: Record, other: Record) -> None:
    await lasting.archive().write([there])

    assert await lasting.archive().write([other]) == 0
    assert await held(lasting.archive()) == [there]


async def test_what_has_expired_is_neither_read_counted_nor_written(lasting: Backend, clock: FakeClock) -> None:
    await fill(lasting)
    records = await held(lasting.archive())
    clock.advance(HOLD + LATE + 1)

    assert {record.record for record in await held(lasting.archive())}.isdisjoint(["session", "hold"])
    assert (await lasting.archive().about()).counts["hold"] == 0
    assert await lasting.archive().write(records) == 0


async def test_records_are_removed_by_their_keys(lasting: Backend) -> None:
    await fill(lasting)
    records = await held(lasting.archive())
    archive = lasting.archive()
    for kind in KINDS:
        first = next(record for record in records if record.record == kind)

        assert await archive.remove(kind, keys=[first.identity, tuple("no" for _ in first.identity)]) == 1
        records.remove(first)

    assert await held(lasting.archive()) == records


async def test_all_of_a_kind_can_be_removed(lasting: Backend) -> None:
    await fill(lasting)

    assert [await lasting.archive().remove(kind) for kind in KINDS] == [1, 2, 1, 1, 3, 1, 2, 1, 2]
    assert await held(lasting.archive()) == []
    assert [await lasting.archive().remove(kind) for kind in KINDS] == [0] * 9


async def test_what_was_not_used_for_long_is_removed_and_the_total_of_a_key_is_not(
    lasting: Backend, clock: FakeClock
) -> None:
    await fill(lasting)
    clock.advance(DAY)
    spend, archive = lasting.spend(), lasting.archive()
    await lasting.statistics().observe([Outcome(tool=NOW, success=True, latency_ms=1)])
    await lasting.lessons().add({"more": Seen(requests=1.0)})
    other = Account(session="two", key="alice")
    await spend.settle(await spend.reserve(other, nano_usd(1), Limits()), nano_usd(1))

    removed = [await archive.remove(kind, before=1_000.0) for kind in ("meter", "statistics", "lesson")]

    assert removed == [2, 1, 1]
    assert [each.name for each in await of(lasting, "statistics")] == ["now"]
    assert [each.identity for each in await of(lasting, "lesson")] == [("more",)]
    assert [each.name for each in await of(lasting, "meter")] == ["1970-01-02 alice", "alice", '["alice", "two"]']


async def test_a_pin_has_no_age(lasting: Backend) -> None:
    await fill(lasting)

    with pytest.raises(ValueError, match="never expires"):
        await lasting.archive().remove("pin", before=9e9)
    assert len(await of(lasting, "pin")) == 2


async def test_a_store_larger_than_a_page_is_read_whole(lasting: Backend) -> None:
    pins = [PinRecord(server=f"s{n % 3}", name=f"{n:05}", approved="a", seen="a") for n in range(1_203)]

    assert await lasting.archive().write(pins) == 1_203

    assert await of(lasting, "pin") == sorted(pins, key=lambda pin: pin.identity)


async def test_a_large_store_is_removed_whole(lasting: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "REMOVED", 6)
    monkeypatch.setattr(record_stores, "BATCH", 6)
    meters = [MeterRecord(kind="day", name=f"{n:05}", spent=n, used=1.0) for n in range(40)]
    holds = [
        HoldRecord(reservation=f"{n:05}", session="s", caller="c", day="d", amount=1, expires=2e3) for n in range(20)
    ]
    archive = lasting.archive()
    await archive.write([*meters, *holds])

    assert [await archive.remove("meter", before=1.0), await archive.remove("hold")] == [40, 20]
    assert await held(archive) == []


@pytest.mark.requirement("design.state-moves")
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=everything)
async def test_any_records_come_back_as_they_were(lasting: Backend, records: list[Record]) -> None:
    archive = lasting.archive()
    for kind in KINDS:
        await archive.remove(kind)

    assert await archive.write(records) == len(records)

    assert await held(lasting.archive()) == records
