"""Activity of a busy gateway is written by another process, whose end loses nothing."""

from __future__ import annotations

import io
import os
from pathlib import Path

import msgspec
import pytest

from pegboard.activity_entries import ActivityEntry, ActivityQuery, ScoredTool, scores_of
from pegboard.errors import ValueRefused
from pegboard.operating_system import BEHIND_REQUESTS
from pegboard.stores import SqliteActivity
from pegboard.stores.sqlite.activity import BUSY
from pegboard.stores.sqlite.activity_process import serve
from pegboard.stores.sqlite.activity_writer import REFUSED, STORED, write

pytestmark = pytest.mark.slow


def entries(first: int, many: int = BUSY) -> list[ActivityEntry]:
    return [
        ActivityEntry(
            id=f"{number:03}",
            at=float(number),
            door="mcp",
            kind="search",
            key="ann",
            scores=scores_of([ScoredTool("git/log", 0.5, True), ScoredTool("git/show", 0.25, False)]),
            called=("git/log",),
            tokens_before=10,
        )
        for number in range(first, first + many)
    ]


async def found(store: SqliteActivity) -> list[ActivityEntry]:
    return (await store.find(ActivityQuery(), 1_000))[::-1]


def priority(process: int) -> int:
    return os.getpriority(os.PRIO_PROCESS, process)


async def test_few_entries_start_no_process(tmp_path: Path) -> None:
    store = SqliteActivity(tmp_path / "a.sqlite")

    await store.put(entries(0, BUSY - 1))

    assert store._writer is not None
    assert not store._writer.runs


@pytest.mark.requirement("activity.writer")
async def test_what_another_process_writes_is_the_same_and_its_death_loses_nothing(tmp_path: Path) -> None:
    apart, here = SqliteActivity(tmp_path / "apart.sqlite"), SqliteActivity(tmp_path / "here.sqlite", apart=False)
    for store in (apart, here):
        await store.put(entries(0))
        await store.put([entries(3, 1)[0]._replace(searches=2)])
    assert apart._writer is not None
    process = apart._writer._process
    assert process is not None
    assert priority(process.pid) == min(19, priority(0) + BEHIND_REQUESTS)
    assert await found(apart) == await found(here)
    assert await apart.by("tool", 0, 9) == await here.by("tool", 0, 9)

    process.kill()
    await apart.put(entries(BUSY))
    await apart.put(entries(2 * BUSY))

    assert await found(apart) == [*entries(0, 3), entries(3, 1)[0]._replace(searches=2), *entries(4, 3 * BUSY - 4)]
    assert not apart._writer.runs
    apart.close()


@pytest.mark.requirement("activity.writer")
async def test_the_writing_process_ends_with_its_store_and_with_what_it_was_given(tmp_path: Path) -> None:
    store = SqliteActivity(tmp_path / "a.sqlite")
    await store.put(entries(0))
    assert store._writer is not None
    process = store._writer._process

    store.close()

    assert process is not None
    assert process.returncode == 0


async def test_one_entry_that_cannot_be_kept_is_named_as_such(tmp_path: Path) -> None:
    store = SqliteActivity(tmp_path / "activity.db")
    with pytest.raises(ValueRefused):
        await store.put([*entries(0), entries(999, 1)[0]._replace(key="\ud800")])
    await store.put(entries(0))

    assert await found(store) == entries(0)
    store.close()


async def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    batches, answers = io.BytesIO(), io.BytesIO()
    write(batches, msgspec.msgpack.encode((entries(0), [])))
    batches.seek(0)
    (tmp_path / "a.sqlite").mkdir()

    await serve(SqliteActivity(tmp_path / "a.sqlite", apart=False), batches, answers)
    batches.seek(0)
    await serve(SqliteActivity(tmp_path / "b.sqlite", apart=False), batches, answers)

    assert answers.getvalue() == REFUSED + STORED


async def test_another_process_brings_nothing_back_that_was_removed(tmp_path: Path) -> None:
    store = SqliteActivity(tmp_path / "a.sqlite")
    await store.put(entries(0))
    assert store._writer is not None
    assert store._writer.runs
    await store.forget(key="ann")

    await store.put(entries(0, BUSY + 1), known=[each.id for each in entries(0)])

    assert await found(store) == entries(BUSY, 1)
    store.close()
