from __future__ import annotations

import asyncio
import gc

import pytest

from pegboard.stores.database import SingleFlight


class Attempt:
    """Goes on until it is let; counts how often it was begun."""

    def __init__(self) -> None:
        self.begun = 0
        self.let = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self) -> int:
        self.begun += 1
        await self.let.wait()
        if self.error:
            raise self.error
        return self.begun


async def waiting(together: SingleFlight[int], count: int) -> list[asyncio.Task[int]]:
    async def ask() -> int:
        return await together()

    tasks = [asyncio.create_task(ask()) for _ in range(count)]
    await asyncio.sleep(0)
    return tasks


async def test_all_who_wait_share_one_attempt() -> None:
    attempt = Attempt()
    tasks = await waiting(SingleFlight(attempt), 5)
    attempt.let.set()

    assert await asyncio.gather(*tasks) == [1] * 5


async def test_whoever_asks_later_begins_another() -> None:
    attempt = Attempt()
    attempt.let.set()
    together = SingleFlight(attempt)

    assert [await together(), await together()] == [1, 2]


async def test_all_who_wait_get_its_error() -> None:
    attempt = Attempt()
    attempt.error = OSError("refused")
    tasks = await waiting(SingleFlight(attempt), 3)
    attempt.let.set()

    assert [str(each) for each in await asyncio.gather(*tasks, return_exceptions=True)] == ["refused"] * 3
    assert attempt.begun == 1


async def test_one_who_leaves_does_not_end_it_for_the_others() -> None:
    attempt = Attempt()
    first, second = await waiting(SingleFlight(attempt), 2)
    first.cancel()
    attempt.let.set()

    assert await second == 1
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_an_error_that_nobody_waited_for_is_no_warning() -> None:
    attempt = Attempt()
    attempt.error = OSError("refused")
    together, complaints = SingleFlight(attempt), list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    [only] = await waiting(together, 1)
    only.cancel()
    await asyncio.gather(only, return_exceptions=True)
    attempt.let.set()
    for _ in range(3):
        await asyncio.sleep(0)
    attempt.error = None

    assert await together() == 2
    gc.collect()
    assert complaints == []
