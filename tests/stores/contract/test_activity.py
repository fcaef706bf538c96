from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import AsyncIterator
from math import isnan, nan
from pathlib import Path

import pytest

from backends import BACKENDS, Backend, params
from pegboard.activity_entries import (
    GROUPINGS,
    ActivityEntry,
    ActivityQuery,
    ActivityTotals,
    ScoredTool,
    conversation_mark,
    scores_of,
)
from pegboard.events import CallFinished, ToolsSearched
from pegboard.protocols import Activity
from pegboard.spend_limits import NanoUsd
from pegboard.stores import MemoryActivity
from pegboard.stores.erasure import forget_activity
from pegboard.stores.memory import activity as memory_activity
from pegboard.stores.sessions import session_key
from pegboard.stores.sql import activity_rows, activity_sums
from pegboard.telemetry.activity_recorder import ActivityRecorder
from pegboard.testing import FakeClock
from pegboard.write_batch import write_batch

DAY = 86_400.0
NAMES = ("", "ann", "bob", "a/b", "c'\"d", "Ä ")
WHOLE = ActivityEntry(
    id="whole",
    at=20_000 * DAY + 5.25,
    door="llm",
    kind="request",
    key="ann",
    client="a client",
    conversation="c0ffee",
    text='Wie spät ist es in Oslo? "quoted" <b>\'',
    upstream="openai",
    model="a-model",
    profile="hybrid",
    encoder="a model",
    outcome="filtered",
    tools=40,
    offered=2,
    scores=scores_of([ScoredTool("time/now", 0.75, True), ScoredTool("git/log", 0.1, False)]),
    called=("git/log",),
    brought_back=("git/log",),
    failures=1,
    searches=2,
    tokens_before=4_000,
    tokens_after=300,
    billed=NanoUsd(600_000),
    saved=NanoUsd(7_400_000),
    latency_ms=12.5,
    error="a_code",
    input_tokens=9_000,
    cached_tokens=8_000,
    written_tokens=500,
    output_tokens=70,
    cost=NanoUsd(12_345),
    unpriced=1,
)


@pytest.fixture(params=params(kind for kind in BACKENDS if kind.keeps_activity))
async def keeping(request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path) -> AsyncIterator[Backend]:
    backend = request.param(clock, tmp_path)
    yield backend
    await backend.close()


def entry(number: int, **fields: object) -> ActivityEntry:
    base = ActivityEntry(id=f"{number:03}", at=20_000 * DAY + number, door="mcp", kind="search")
    return base._replace(**fields)  # type: ignore[arg-type]


async def ids(backend: Backend, most: int = 100, **query: object) -> list[str]:
    return [each.id for each in await backend.activity().find(ActivityQuery(**query), most)]  # type: ignore[arg-type]


def any_entry(drawn: random.Random) -> ActivityEntry:
    """One of a few ids and names, so that entries meet."""
    return ActivityEntry(
        id=f"{drawn.randrange(60):03}",
        at=round(drawn.uniform(20_000, 20_003) * DAY, 1),
        door=drawn.choice(("llm", "mcp", "api")),
        kind="search",
        **{name: drawn.choice(NAMES) for name in ("key", "client", "conversation", "model")},  # type: ignore[arg-type]
        outcome=drawn.choice(("", "filtered", "nothing found")),
        called=tuple(drawn.choices(NAMES, k=drawn.randrange(4))),
        error=drawn.choice(("", "a_code")),
        failures=drawn.randrange(3),
        searches=drawn.randrange(2),
        tokens_before=drawn.randrange(9_000),
        billed=NanoUsd(drawn.randrange(10**12)),
        saved=NanoUsd(drawn.randrange(10**12)),
        input_tokens=drawn.randrange(10**6),
        output_tokens=drawn.randrange(10**4),
        cost=NanoUsd(drawn.randrange(10**12)),
        unpriced=drawn.randrange(2),
    )


async def sums(store: Activity, since: int = 0, most: int = 99) -> tuple[object, ...]:
    """All sums that a store tells."""
    return await store.by_day(since), *[await store.by(each, since, most) for each in GROUPINGS]


async def test_an_entry_comes_back_as_it_was(keeping: Backend) -> None:
    await keeping.activity().put([WHOLE])

    assert await keeping.activity().get("whole") == WHOLE
    assert await keeping.activity().find(ActivityQuery(), 10) == [WHOLE]
    assert await keeping.activity().get("another") is None
    assert WHOLE.missed == ("git/log",)


async def test_a_score_that_is_no_number_comes_back_as_such(keeping: Backend) -> None:
    await keeping.activity().put([WHOLE._replace(scores=scores_of([ScoredTool("a/b", nan, True)]))])

    [kept] = await keeping.activity().find(ActivityQuery(), 10)
    assert isnan(kept.ranked[0].score)


async def test_an_entry_with_the_same_id_replaces_the_first(keeping: Backend) -> None:
    await keeping.activity().put([WHOLE, WHOLE._replace(searches=3)])
    await keeping.activity().put([later := WHOLE._replace(called=("a", "b"))])

    assert await keeping.activity().find(ActivityQuery(), 10) == [later]


@pytest.mark.parametrize("cost", [2**63, 2**80])
async def test_a_number_that_no_store_holds_keeps_no_other_entry_from_being_stored(keeping: Backend, cost: int) -> None:
    store = keeping.activity()
    await write_batch([entry(1), entry(2, cost=cost), *map(entry, range(3, 40))], store.put)

    assert {each.id for each in await store.find(ActivityQuery(), 99)} >= {"001", *(f"{n:03}" for n in range(3, 40))}


async def test_the_newest_come_first_and_the_next_page_goes_on_where_one_ends(keeping: Backend) -> None:
    await keeping.activity().put([entry(number, at=7.0) for number in range(5)])

    assert await ids(keeping, 3) == ["004", "003", "002"]
    assert await ids(keeping, 3, before=(7.0, "002")) == ["001", "000"]


async def test_many_entries_in_memory_are_looked_at_on_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests go on meanwhile."""
    monkeypatch.setattr(memory_activity, "MANY", 2)
    threads: list[bool] = []

    class Watching(ActivityQuery):
        def passes(self, entry: ActivityEntry) -> bool:
            threads.append(threading.current_thread() is threading.main_thread())
            return super().passes(entry)

    store = MemoryActivity()
    await store.put([entry(1), entry(2)])
    assert [each.id for each in await store.find(Watching(), 9)] == ["002", "001"]
    await store.put([entry(3)])
    assert [each.id for each in await store.find(Watching(), 2)] == ["003", "002"]
    assert [each.totals.decisions for each in await store.by("door", 0, 9)] == [3]

    assert threads == [True] * 2 + [False] * 3


async def test_entries_are_found_by_door_key_conversation_time_and_failure(keeping: Backend) -> None:
    await keeping.activity().put(
        [
            entry(1, door="llm", key="ann"),
            entry(2, key="ann", conversation="talk"),
            entry(3, error="a_code"),
            entry(4, failures=1),
        ]
    )

    assert await ids(keeping, door="llm") == ["001"]
    assert await ids(keeping, key="ann") == ["002", "001"]
    assert await ids(keeping, key="ann", conversation="talk") == ["002"]
    assert await ids(keeping, key="") == ["004", "003"]
    assert await ids(keeping, failed=True) == ["004", "003"]
    assert await ids(keeping, since=20_000 * DAY + 3) == ["004", "003"]
    assert await ids(keeping, key="'; DROP TABLE activity; --") == []


@pytest.mark.parametrize("seed", range(3))
async def test_every_filter_finds_what_a_scan_finds(keeping: Backend, seed: int) -> None:
    drawn, scan = random.Random(seed), MemoryActivity()
    entries = [any_entry(drawn)._replace(id=f"{number:03}") for number in range(120)]
    for store in (keeping.activity(), scan):
        await store.put(entries)
    for _ in range(40):
        query = ActivityQuery(
            **{name: drawn.choice((None, None, None, *NAMES)) for name in ("key", "client", "model", "tool")},
            outcome=drawn.choice((None, None, "", "filtered", "nothing found")),
            door=drawn.choice((None, "llm")),
            failed=drawn.random() < 0.2,
        )
        assert await keeping.activity().find(query, 200) == await scan.find(query, 200), query


async def test_a_tool_is_found_by_its_whole_name(keeping: Backend) -> None:
    odd = ('a"b\\', "b\\", "b", 'x","b', "Ä\n", "[b]")
    await keeping.activity().put([entry(number, called=(name,)) for number, name in enumerate(odd)])

    for number, name in enumerate(odd):
        assert await ids(keeping, tool=name) == [f"{number:03}"]
    assert await ids(keeping, tool="a") == []
    assert await ids(keeping, tool="%") == []


async def test_sums_are_those_of_the_entries(keeping: Backend) -> None:
    await keeping.activity().put([WHOLE, entry(1), entry(2, at=20_001 * DAY, key="ann", tokens_before=50)])

    assert await keeping.activity().by_day(0) == [
        (20_000, ActivityTotals(2, 1, 1, 2, 4_000, 300, 600_000, 7_400_000, 9_000, 8_000, 500, 70, 12_345, 1)),
        (20_001, ActivityTotals(1, 0, 0, 0, 50, 0, 0, 0)),
    ]
    assert [day for day, _ in await keeping.activity().by_day(20_001)] == [20_001]
    by_key = await keeping.activity().by("key", 0, 10)
    assert [(each.name, each.first, each.last, each.totals.decisions) for each in by_key] == [
        ("ann", 20_000 * DAY + 5.25, 20_001 * DAY, 2),
        ("", 20_000 * DAY + 1, 20_000 * DAY + 1, 1),
    ]
    assert by_key[0].totals.tokens_saved == 3_750
    assert [each.name for each in await keeping.activity().by("conversation", 0, 1)] == [""]
    assert sorted(each.name for each in await keeping.activity().by("door", 0, 9)) == ["llm", "mcp"]


async def test_old_entries_are_removed(keeping: Backend) -> None:
    await keeping.activity().put([entry(number, at=float(number)) for number in range(8)])

    assert await keeping.activity().remove(5.0) == 6
    assert await ids(keeping) == ["007", "006"]
    assert await keeping.activity().remove(5.0) == 0


@pytest.mark.requirement("observability.sums")
@pytest.mark.parametrize("seed", range(4))
async def test_sums_equal_a_scan_of_the_entries_whatever_happened_to_them(keeping: Backend, seed: int) -> None:
    """Batches with new and changed entries, removal by age, erasure of keys and conversations, in any order."""
    drawn, scan = random.Random(seed), MemoryActivity()
    for step in range(30):
        stores, act = (keeping.activity(), scan), drawn.random()
        if act < 0.7:
            batch = [any_entry(drawn) for _ in range(drawn.randrange(1, 20))]
            done = [await store.put(batch) for store in stores]
        elif act < 0.8:
            before = drawn.uniform(20_000, 20_002) * DAY
            done = [await store.remove(before) for store in stores]
        elif act < 0.9:
            key = drawn.choice(NAMES)
            done = [await store.forget(key=key) for store in stores]
        else:
            marks = drawn.sample(NAMES, 2)
            done = [await store.forget(conversations=marks) for store in stores]
        assert done[0] == done[1]
        assert await sums(keeping.activity()) == await sums(scan), f"after step {step}"
        since = drawn.choice((20_000, 20_001, 20_003))
        assert await sums(keeping.activity(), since, 2) == await sums(scan, since, 2), f"after step {step}"


@pytest.mark.parametrize("seed", range(3))
async def test_decisions_with_calls_of_a_tool_are_those_of_a_scan_page_by_page(keeping: Backend, seed: int) -> None:
    drawn, scan = random.Random(seed), MemoryActivity()
    for _ in range(6):
        batch = [any_entry(drawn) for _ in range(25)]
        for store in (keeping.activity(), scan):
            await store.put(batch)
        for tool in (*NAMES, "never"):
            before = None
            for _ in range(4):
                query = ActivityQuery(tool=tool, before=before, key=drawn.choice((None, "ann")))
                page = await scan.find(query, 4)
                assert await keeping.activity().find(query, 4) == page
                before = (page[-1].at, page[-1].id) if page else before


@pytest.mark.requirement("observability.sums")
async def test_sums_equal_a_scan_where_removal_takes_several_steps(
    keeping: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity_rows, "REMOVED", 7)
    monkeypatch.setattr(activity_sums, "RENEWED", 3)
    drawn, scan = random.Random(5), MemoryActivity()
    entries = [any_entry(drawn)._replace(id=f"{number:03}") for number in range(150)]
    for store in (keeping.activity(), scan):
        await store.put(entries)
        await store.remove(20_001.5 * DAY)
        await store.forget(key="ann")

    assert await sums(keeping.activity()) == await sums(scan)


@pytest.mark.requirement("observability.sums")
async def test_writers_at_once_lose_no_sum(keeping: Backend) -> None:
    batches = [[entry(10 * number + each, key="ann") for each in range(10)] for number in range(12)]
    await asyncio.gather(*(keeping.activity().put(batch) for batch in batches))

    [(_, totals)] = await keeping.activity().by_day(0)
    assert totals.decisions == 120
    assert await keeping.activity().forget(key="ann") == 120
    assert await sums(keeping.activity()) == ([], *([[]] * len(GROUPINGS)))


async def test_what_belongs_to_a_key_or_a_session_is_forgotten(keeping: Backend) -> None:
    await keeping.activity().put(
        [
            entry(1, key="ann"),
            entry(2, key="bob", conversation=conversation_mark(session_key("a session", "reading"))),
            entry(3, key="bob", conversation=conversation_mark("a session")),
            entry(4, key="bob"),
        ]
    )

    assert await forget_activity(keeping.activity(), caller="ann") == 1
    assert await forget_activity(keeping.activity(), session="a session", endpoints=("", "reading")) == 2
    assert await ids(keeping) == ["004"]
    assert await forget_activity(keeping.activity()) == 1
    assert await ids(keeping) == []


@pytest.mark.parametrize("seed", range(2))
async def test_what_was_removed_does_not_come_back_with_a_change_to_it(keeping: Backend, seed: int) -> None:
    drawn, scan = random.Random(seed), MemoryActivity()
    for _ in range(8):
        batch = [any_entry(drawn) for _ in range(20)]
        known = {each.id for each in drawn.sample(batch, 10)}
        there = {each.id for each in await keeping.activity().find(ActivityQuery(), 100)}
        for store in (keeping.activity(), scan):
            await store.put(batch, known=known)
        now = {each.id for each in await keeping.activity().find(ActivityQuery(), 100)}
        assert now == there | ({each.id for each in batch} - known)
        erased = drawn.choice(NAMES)
        assert await keeping.activity().forget(key=erased) == await scan.forget(key=erased)
        assert await sums(keeping.activity()) == await sums(scan)


async def test_a_conversation_erased_at_one_process_stays_erased_when_another_notes_its_next_call(
    keeping: Backend,
) -> None:
    mark, here, there = conversation_mark("a session"), ActivityRecorder(), ActivityRecorder()
    async with here.running(keeping.activity()), there.running(keeping.activity()):
        there.emit(ToolsSearched(at=1.0, found=1, by_words=False, conversation=mark))
        there.emit(ToolsSearched(at=2.0, found=1, by_words=False, conversation="another"))
        await there.flush()
        assert await here.forget(mark) == 1

        for conversation in (mark, "another"):
            there.emit(CallFinished(at=3.0, tool="a/b", success=True, latency_ms=1.0, conversation=conversation))
        await there.flush()
        there.emit(ToolsSearched(at=4.0, found=1, by_words=False, conversation=mark))
        await there.flush()

    kept = await keeping.activity().find(ActivityQuery(), 9)
    assert [(each.conversation, each.at, each.called) for each in kept] == [(mark, 4.0, ()), ("another", 2.0, ("a/b",))]
    [(_, totals)] = await keeping.activity().by_day(0)
    assert totals.decisions == 2


async def test_an_empty_session_is_nobodys_in_particular(keeping: Backend) -> None:
    await keeping.activity().put([entry(1), entry(2, key="ann")])

    assert await forget_activity(keeping.activity(), session="", endpoints=("", "reading")) == 0
    assert await ids(keeping) == ["002", "001"]
