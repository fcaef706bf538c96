"""Reports of progress: in order, one at a time, and of too many that wait the latest."""

from __future__ import annotations

import asyncio

from pegboard.upstreams.server_requests import MOST_WAITING, ProgressRelay


async def test_reports_are_passed_on_in_order_and_one_at_a_time() -> None:
    taken: list[float] = []
    at_once = 0

    async def take(progress: float, _total: float | None, _message: str | None) -> None:
        nonlocal at_once
        at_once += 1
        assert at_once == 1
        await asyncio.sleep(0)
        taken.append(progress)
        at_once -= 1

    paced = ProgressRelay(take)
    await asyncio.gather(*(paced(number, None, None) for number in range(50)))
    assert taken == list(range(50))


async def test_of_more_than_wait_the_latest_are_kept() -> None:
    taken: list[float] = []
    free = asyncio.Event()

    async def take(progress: float, _total: float | None, _message: str | None) -> None:
        taken.append(progress)
        await free.wait()

    paced = ProgressRelay(take)
    first = asyncio.create_task(paced(0, None, None))
    await asyncio.sleep(0)
    for number in range(1, 1000):
        await paced(number, None, None)
    free.set()
    await first
    assert taken == [0, *range(1000 - MOST_WAITING, 1000)]


async def test_after_a_report_that_failed_the_next_is_passed_on() -> None:
    taken: list[float] = []

    async def take(progress: float, _total: float | None, _message: str | None) -> None:
        if not progress:
            raise ConnectionError("the client is gone")
        taken.append(progress)

    paced = ProgressRelay(take)
    await asyncio.gather(paced(0, None, None), return_exceptions=True)
    await paced(1, None, None)
    assert taken == [1]
