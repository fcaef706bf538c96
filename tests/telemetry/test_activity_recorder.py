from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

import pytest

from pegboard.activity_entries import ActivityEntry, ActivityQuery
from pegboard.errors import StoreError, ValueRefused
from pegboard.events import CallFinished, DefinitionChanged, ServerChanged, ToolsSearched
from pegboard.stores import MemoryActivity
from pegboard.telemetry import activity_book, activity_recorder
from pegboard.telemetry.activity_recorder import BUSY_EVERY, EVERY, MANY, ActivityRecorder

CHANGED = DefinitionChanged(at=1.0, tool="a/b", approved="1", seen="2", held_back=True)


def searched(number: int = 0) -> ToolsSearched:
    return ToolsSearched(at=float(number), found=number, by_words=False, conversation=str(number))


class Failing(MemoryActivity):
    works = False

    async def put(self, entries: Sequence[ActivityEntry], *, known: Collection[str] = ()) -> None:
        if not self.works:
            raise StoreError("It does not answer.", remedy="Wait.")
        await super().put(entries, known=known)


class Refusing(MemoryActivity):
    """It keeps nothing of one conversation."""

    async def put(self, entries: Sequence[ActivityEntry], *, known: Collection[str] = ()) -> None:
        if any(each.conversation == "1" for each in entries):
            raise ValueRefused("It is not text.", remedy="Check the value.")
        await super().put(entries, known=known)


async def test_an_entry_that_the_store_refuses_keeps_no_other_from_being_stored(
    caplog: pytest.LogCaptureFixture,
) -> None:
    recorder = ActivityRecorder()
    async with recorder.running(store := Refusing()):
        with recorder.watched() as watcher:
            for number in range(4):
                recorder.emit(searched(number))
            await recorder.flush()
            seen = [watcher.get_nowait() for _ in range(watcher.qsize())]

    stored = await store.find(ActivityQuery(), 10)
    assert sorted(each.conversation for each in stored) == ["0", "2", "3"]
    assert {each.id for each in seen if each is not None} == {each.id for each in stored}
    assert (recorder.lost, recorder.amiss()) == (1, "")
    assert "Entries of activity not kept, 1 in all" in caplog.text


async def test_what_happens_is_stored_and_told_to_those_who_watch() -> None:
    recorder = ActivityRecorder()
    async with recorder.running(store := MemoryActivity()):
        with recorder.watched() as watcher:
            recorder.emit(searched())
            recorder.emit(ServerChanged(at=1.0, server="a", state="ready"))
            seen = await asyncio.wait_for(watcher.get(), 60)

    assert seen is not None
    assert await store.find(ActivityQuery(), 10) == [seen]


async def test_what_happened_before_the_end_is_stored() -> None:
    recorder = ActivityRecorder()
    async with recorder.running(store := MemoryActivity()):
        for number in range(3_000):
            recorder.emit(searched(number))

    assert len(await store.find(ActivityQuery(), 10_000)) == 3_000


async def test_much_that_nobody_watches_is_written_less_often() -> None:
    recorder = ActivityRecorder()
    async with recorder.running(MemoryActivity()):
        pauses = [recorder.pause]
        for number in range(MANY):
            recorder.emit(searched(number))
        await recorder.flush()
        pauses.append(recorder.pause)
        with recorder.watched():
            pauses.append(recorder.pause)
        recorder.emit(searched())
        await recorder.flush()
        pauses.append(recorder.pause)

    assert pauses == [EVERY, BUSY_EVERY, EVERY, EVERY]


async def test_a_store_that_fails_gets_everything_once_it_works(caplog: pytest.LogCaptureFixture) -> None:
    recorder = ActivityRecorder()
    async with recorder.running(store := Failing()):
        for number in range(3):
            recorder.emit(searched(number))
            await recorder.flush()
        store.works = True
        await recorder.flush()

        assert len(await store.find(ActivityQuery(), 10)) == 3
    assert [each.message for each in caplog.records] == [
        "Activity cannot be kept, and is tried again: It does not answer. Wait."
    ]


async def test_what_waited_for_a_store_that_failed_is_written_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """To write all of it at once would hold up requests for seconds."""
    monkeypatch.setattr(activity_recorder, "AT_ONCE", 10)
    monkeypatch.setattr(activity_recorder, "MOST_WAITING", 40)
    sizes: list[int] = []

    class Sized(Failing):
        async def put(self, entries: Sequence[ActivityEntry], *, known: Collection[str] = ()) -> None:
            await super().put(entries, known=known)
            sizes.append(len(entries))

    recorder = ActivityRecorder()
    recorder.store = store = Sized()
    for number in range(50):
        recorder.emit(searched(number))
        await recorder.flush()
    store.works = True
    await recorder.flush()

    kept = await store.find(ActivityQuery(), 100)
    assert [each.conversation for each in kept] == [str(number) for number in range(49, 9, -1)]
    assert (sizes, recorder.lost) == ([10] * 4, 10)


async def test_a_store_that_fails_as_none_should_gets_what_comes_after(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity_recorder, "EVERY", 0.01)

    class Broken(MemoryActivity):
        tried = 0

        async def put(self, entries: Sequence[ActivityEntry], *, known: Collection[str] = ()) -> None:
            self.tried += 1
            if self.tried == 1:
                raise OverflowError
            await super().put(entries, known=known)

    recorder = ActivityRecorder()
    async with recorder.running(store := Broken()):
        with recorder.watched() as watcher:
            recorder.emit(searched())
            assert await asyncio.wait_for(watcher.get(), 60) is not None

    assert store.tried == 2


async def test_each_kind_of_failure_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(activity_recorder, "EVERY", 0.01)
    errors = iter([StoreError("It is away.", remedy="Wait."), *[OverflowError()] * 3])
    over = asyncio.Event()

    class Broken(MemoryActivity):
        async def put(self, entries: Sequence[ActivityEntry], *, known: Collection[str] = ()) -> None:
            if (error := next(errors, None)) is not None:
                raise error
            over.set()

    recorder = ActivityRecorder()
    async with recorder.running(Broken()):
        recorder.emit(searched())
        await asyncio.wait_for(over.wait(), 60)

    assert [each.levelname for each in caplog.records] == ["WARNING", "ERROR"]
    assert recorder.amiss() == ""


async def test_nothing_is_amiss_once_nothing_waits() -> None:
    """The event that could not be noted is gone."""
    recorder = ActivityRecorder()
    recorder.store = MemoryActivity()
    recorder._failed(ArithmeticError())
    assert recorder.amiss()

    await recorder.flush()

    assert recorder.amiss() == ""


async def test_events_that_nobody_stores_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity_recorder, "MOST_WAITING", 2)
    recorder = ActivityRecorder()

    for number in range(5):
        recorder.emit(searched(number))

    assert recorder.lost == 3


async def test_a_watcher_that_is_slow_is_told_that_entries_were_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity_recorder, "MOST_BEHIND", 2)
    recorder = ActivityRecorder()
    async with recorder.running(MemoryActivity()):
        with recorder.watched() as watcher:
            for number in range(5):
                recorder.emit(searched(number))
            await recorder.flush()

            assert watcher.get_nowait() is None


async def test_what_was_erased_elsewhere_stays_erased_however_much_others_do_before_its_next_call() -> None:
    recorder = ActivityRecorder()
    async with recorder.running(store := MemoryActivity()):
        recorder.emit(searched(1))
        await recorder.flush()
        assert await store.forget(conversations=["1"]) == 1
        for _ in range(2 * activity_recorder.MOST_STORED):
            recorder.emit(searched(2))
        await recorder.flush()
        recorder.emit(CallFinished(at=9.0, tool="a/b", server="a", success=True, latency_ms=1.0, conversation="1"))
        await recorder.flush()

        assert {each.conversation for each in await store.find(ActivityQuery(), 9_999)} == {"2"}
        assert len(recorder._stored_ids) <= activity_recorder.MOST_STORED


async def test_what_was_erased_elsewhere_stays_erased_though_its_change_waited_behind_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(activity_recorder, "AT_ONCE", 10)
    monkeypatch.setattr(activity_recorder, "MOST_STORED", 20)
    monkeypatch.setattr(activity_book, "MOST_OPEN", 10)
    recorder = ActivityRecorder()
    recorder.store = store = Failing()
    store.works = True
    recorder.emit(searched(1))
    await recorder.flush()
    assert await store.forget(conversations=["1"]) == 1
    store.works = False
    call = CallFinished(at=9.0, tool="a/b", server="a", success=True, latency_ms=1.0, conversation="1")
    for event in (*[searched(2)] * 25, call, *map(searched, range(3, 13))):
        recorder.emit(event)
        await recorder.flush()
    store.works = True
    await recorder.flush()

    assert {each.conversation for each in await store.find(ActivityQuery(), 99)} == set(map(str, range(2, 13)))


async def test_findings_are_kept_apart() -> None:
    recorder = ActivityRecorder()
    recorder.emit(CHANGED)

    assert list(recorder.notices) == [CHANGED]


async def test_what_happens_during_a_write_is_left_for_the_next_one() -> None:
    class Busy(MemoryActivity):
        async def put(self, entries: Sequence[ActivityEntry], *, known: Collection[str] = ()) -> None:
            await super().put(entries, known=known)
            if len(self._entries) < 5:
                recorder.emit(searched(len(self._entries)))

    recorder, numbers = ActivityRecorder(), list[int]()
    async with recorder.running(store := Busy()):
        recorder.emit(searched())
        for _ in range(2):
            await recorder.flush()
            numbers.append(len(await store.find(ActivityQuery(), 10)))

    assert numbers == [1, 2]
    assert len(await store.find(ActivityQuery(), 10)) == 5
