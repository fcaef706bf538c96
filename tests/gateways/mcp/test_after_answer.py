"""Work that follows answers."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

import pytest

from pegboard.gateways.mcp.gateway import after_answer
from pegboard.gateways.mcp.gateway.after_answer import AfterAnswer
from processes import until


async def test_work_waits_for_a_pause_between_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(after_answer, "PAUSE", 3600.0)
    monkeypatch.setattr(after_answer, "LONGEST_WAIT", 3600.0)
    later, done = AfterAnswer(), list[int]()
    for number in range(3):
        later(lambda number=number: done.append(number))
    await asyncio.sleep(0)
    assert not done
    later.flush()
    assert done == [0, 1, 2]


async def test_work_is_done_in_time_although_answers_follow_each_other_without_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(after_answer, "PAUSE", 0.01)
    monkeypatch.setattr(after_answer, "LONGEST_WAIT", 0.05)
    later, done = AfterAnswer(), list[int]()
    later(lambda: done.append(0))
    monkeypatch.setattr(after_answer, "PAUSE", 3600.0)
    later(lambda: done.append(1))
    await until(lambda: done == [0, 1])


async def test_what_waits_when_the_first_work_is_due_is_done_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(after_answer, "PAUSE", 0.01)
    monkeypatch.setattr(after_answer, "LONGEST_WAIT", 0.05)
    later, done = AfterAnswer(), list[int]()
    later(lambda: done.append(0))
    later(lambda: done.append(1))
    monkeypatch.setattr(after_answer, "PAUSE", 3600.0)
    later._waiting[1] = (later._waiting[1][0] + 3600.0, *later._waiting[1][1:])
    await until(lambda: done == [0, 1])


@pytest.mark.parametrize("flushed", [False, True], ids=["in a pause", "at once"])
async def test_work_runs_in_the_context_of_its_own_call(*, flushed: bool) -> None:
    """Its span is there: the log record of a call belongs to the trace of that call, not of the one before."""
    later, told, caller = AfterAnswer(), list[str](), ContextVar("caller", default="nobody")

    async def call(name: str) -> None:
        caller.set(name)
        later(lambda: told.append(caller.get()))

    await asyncio.gather(call("ada"), call("bob"))
    if flushed:
        later.flush()
    await until(lambda: told == ["ada", "bob"])


async def test_work_that_raises_does_not_keep_the_rest_from_being_done(caplog: pytest.LogCaptureFixture) -> None:
    later, done = AfterAnswer(), list[int]()
    later(lambda: 1 / 0)
    later(lambda: done.append(1))
    await until(lambda: done == [1])
    assert "The record of a call failed" in caplog.text


async def test_a_timer_that_is_early_by_a_part_of_a_millisecond_is_not_set_again() -> None:
    later, done = AfterAnswer(), list[int]()
    later(lambda: done.append(0))
    later._latest = asyncio.get_running_loop().time() - after_answer.PAUSE + after_answer.TICK / 2
    later._next()
    assert done == [0]
