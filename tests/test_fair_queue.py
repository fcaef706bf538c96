"""Who waits takes turns."""

from __future__ import annotations

import asyncio

import pytest

from pegboard.errors import QuotaReached
from pegboard.fair_queue import FairQueue

pytestmark = pytest.mark.requirement("scale.tenants")


async def turns(queue: FairQueue, owners: str) -> str:
    """The owners of one letter each, in the order in which they got their places."""
    got: list[str] = []

    async def work(owner: str) -> None:
        async with queue.place(owner):
            got.append(owner)
            await asyncio.sleep(0)

    await asyncio.gather(*map(work, owners))
    return "".join(got)


async def most_at_work(queue: FairQueue, owners: str) -> int:
    """The most that were at work at once."""
    at_work = most = 0

    async def work(owner: str) -> None:
        nonlocal at_work, most
        async with queue.place(owner):
            at_work += 1
            most = max(most, at_work)
            await asyncio.sleep(0)
            at_work -= 1

    await asyncio.gather(*map(work, owners))
    return most


async def test_who_waits_for_one_is_served_before_the_many_of_another() -> None:
    assert await turns(FairQueue(1), "aaaaaab") == "aabaaaa"


async def test_three_tenants_take_turns() -> None:
    assert await turns(FairQueue(1), "xaaabbbccc") == "xabcabcabc"


async def test_as_many_are_at_work_as_it_is_wide() -> None:
    assert await most_at_work(FairQueue(3), "abcdabcd") == 3


@pytest.mark.parametrize("width", [1, 2, 3])
async def test_one_tenant_never_has_all_places_but_the_only_one(width: int) -> None:
    assert await most_at_work(FairQueue(width), "a" * 10) == max(1, width - 1)


async def test_who_comes_beside_the_many_of_another_waits_for_none_of_them() -> None:
    queue, end = FairQueue(2), asyncio.Event()

    async def long() -> None:
        async with queue.place("a"):
            await end.wait()

    many = [asyncio.create_task(long()) for _ in range(5)]
    await asyncio.sleep(0)
    assert await asyncio.wait_for(turns(queue, "b"), 5) == "b"
    end.set()
    await asyncio.gather(*many)


async def test_a_place_that_was_given_up_waiting_goes_to_the_next() -> None:
    queue = FairQueue(1)
    async with queue.place("a"):
        gone = asyncio.create_task(turns(queue, "b"))
        stays = asyncio.create_task(turns(queue, "c"))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
    assert await stays == "c"
    assert await turns(queue, "d") == "d"


async def test_a_place_that_comes_with_the_cancellation_is_not_lost() -> None:
    queue = FairQueue(1)
    async with queue.place("a"):
        gone = asyncio.create_task(turns(queue, "b"))
        await asyncio.sleep(0)
    gone.cancel()  # it has the place, and has not run since
    with pytest.raises(asyncio.CancelledError):
        await gone
    assert await asyncio.wait_for(turns(queue, "c"), 5) == "c"


async def test_more_than_the_most_are_refused_and_others_are_not() -> None:
    queue = FairQueue(1, most=2)
    async with queue.place("a"):
        waiting = [asyncio.create_task(turns(queue, owner)) for owner in "aab"]
        await asyncio.sleep(0)
        with pytest.raises(QuotaReached, match="'a' has reached its quota of 2 waiting requests"):
            await turns(queue, "a")
    assert await asyncio.gather(*waiting) == ["a", "a", "b"]


async def test_who_has_given_up_waiting_takes_no_room_in_line() -> None:
    queue, done = FairQueue(1, most=1), list[int]()

    async def work(number: int) -> None:
        async with queue.place("b"):
            done.append(number)

    async with queue.place("a"):
        gone = asyncio.create_task(work(1))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait([gone])
        stays = asyncio.create_task(work(2))
        await asyncio.sleep(0)
    await stays
    assert done == [2]


async def test_a_place_is_free_again_after_an_error() -> None:
    queue = FairQueue(1)
    with pytest.raises(ValueError, match="lost"):
        async with queue.place("a"):
            raise ValueError("lost")
    assert await turns(queue, "b") == "b"
