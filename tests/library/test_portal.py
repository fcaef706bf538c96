from __future__ import annotations

import asyncio
import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextvars import ContextVar

import pytest

from pegboard.library.portal import Portal

WHO = ContextVar("WHO", default="nobody")


async def name() -> str:
    return threading.current_thread().name


async def test_work_runs_on_the_portals_loop_whoever_asks() -> None:
    portal = Portal()

    assert [portal.run(name()), await portal.wait(name())] == ["pegboard", "pegboard"]
    portal.close()


async def test_cancelling_who_waits_cancels_the_work() -> None:
    portal, entered, cancelled = Portal(), threading.Event(), threading.Event()

    async def work() -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    task = asyncio.create_task(portal.wait(work()))
    await asyncio.to_thread(entered.wait, 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert await asyncio.to_thread(cancelled.wait, 20)
    portal.close()


def test_closing_ends_the_thread_and_later_work_starts_another() -> None:
    portal, before = Portal(), threading.active_count()
    portal.close()
    portal.run(name())
    assert threading.active_count() == before + 1

    portal.close()

    assert (threading.active_count(), portal.started) == (before, False)


def test_work_inside_may_wait_for_more_work_but_not_block_for_it() -> None:
    portal = Portal()

    async def outer() -> str:
        with pytest.raises(RuntimeError, match="async method"):
            portal.run(name())
        return await portal.wait(name())

    assert portal.run(outer()) == "pegboard"
    portal.close()


def test_a_function_in_a_thread_of_the_portal_has_the_callers_context_and_ends_before_closing_does() -> None:
    before = set(threading.enumerate())
    portal, go, ended = Portal(), threading.Event(), threading.Event()

    def function(number: int) -> tuple[int, str]:
        go.wait(60)
        ended.set()
        return number, WHO.get()

    async def outer() -> tuple[int, str]:
        WHO.set("ada")
        called = asyncio.create_task(portal.in_thread(function, 7))
        await asyncio.sleep(0)
        go.set()
        return await called

    assert portal.run(outer()) == (7, "ada")
    portal.close()
    assert ended.is_set()
    assert not any(thread.name.startswith("pegboard") for thread in set(threading.enumerate()) - before)


def test_work_that_comes_while_a_portal_closes_waits_and_runs_on_the_next_loop() -> None:
    portal, closing, go = Portal(), threading.Event(), threading.Event()

    async def loop() -> int:
        return id(asyncio.get_running_loop())

    async def last() -> None:
        closing.set()
        await asyncio.to_thread(go.wait, 60)

    async def never() -> None:
        await asyncio.Event().wait()

    with ThreadPoolExecutor(4) as pool:
        portal.run(loop())
        running = pool.submit(portal.run, never())
        closed = pool.submit(portal.close, last)
        assert closing.wait(60)
        later = pool.submit(portal.run, name()), pool.submit(asyncio.run, portal.wait(name()))
        go.set()

        assert [each.result(60) for each in later] == ["pegboard", "pegboard"]
        closed.result(60)
        with pytest.raises(CancelledError):
            running.result(60)
    portal.close()
    assert not portal.started
