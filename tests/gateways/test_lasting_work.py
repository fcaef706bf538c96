"""What goes on beside the requests does not end unseen."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import pytest

from pegboard.gateways import lasting_work
from pegboard.gateways.lasting_work import STEADY_SECONDS, kept_up
from pegboard.testing import FakeClock

FAILURE = "Sessions could not be stored"


async def failing(errors: Sequence[Exception | float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that fails with these errors, each at once or after so many seconds, and then lasts; until it does."""
    monkeypatch.setattr(lasting_work, "RESTART_SECONDS", 0)
    left, clock, lasts = list(errors), FakeClock(), asyncio.Event()

    async def work() -> None:
        while left:
            match left.pop(0):
                case Exception() as error:
                    raise error
                case seconds:
                    clock.advance(seconds)
        lasts.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(kept_up(work, clock, FAILURE))
    await asyncio.wait_for(lasts.wait(), 60)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


async def test_work_that_fails_begins_again_and_is_logged_without_what_the_error_says(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await failing([RuntimeError("password=hunter2")], monkeypatch)
    assert [each.getMessage() for each in caplog.records] == [f"{FAILURE} (RuntimeError), which is tried again"]
    assert "hunter2" not in caplog.text


async def test_a_failure_that_repeats_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await failing([RuntimeError(), RuntimeError(), OSError(), OSError()], monkeypatch)
    assert [each.getMessage().split("(")[1][:7] for each in caplog.records] == ["Runtime", "OSError"]


async def test_a_failure_after_a_minute_without_one_is_logged_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await failing([OSError(), STEADY_SECONDS, OSError()], monkeypatch)
    assert len(caplog.records) == 2


async def test_work_that_fails_as_it_is_cancelled_ends_all_the_same(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lasting_work, "RESTART_SECONDS", 0)
    begun, again = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        (again if begun.is_set() else begun).set()
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("password=hunter2")

    task = asyncio.create_task(kept_up(work, FakeClock(), FAILURE))
    await asyncio.wait_for(begun.wait(), 60)
    task.cancel()
    restarted = asyncio.create_task(again.wait())
    await asyncio.wait([task, restarted], return_when=asyncio.FIRST_COMPLETED)

    assert task.cancelled(), "who ends a gateway waits for it"
    assert not restarted.done()
    restarted.cancel()
    assert [each.getMessage() for each in caplog.records] == [f"{FAILURE} (RuntimeError)"]
