from __future__ import annotations

import asyncio

import pytest

from backends import Backend
from pegboard.rate_limits import RateMeter
from pegboard.testing import FakeClock


def meter(key: str = "ann", calls: int = 3, seconds: float = 30.0) -> RateMeter:
    return RateMeter(key=key, calls=calls, seconds=seconds)


async def test_so_many_calls_pass_at_once_and_the_next_is_told_when(backend: Backend, clock: FakeClock) -> None:
    store = backend.rates()

    assert [await store.take([meter()]) for _ in range(3)] == [0.0, 0.0, 0.0]
    assert await store.take([meter()]) == pytest.approx(10.0)
    clock.advance(9.0)
    assert await store.take([meter()]) == pytest.approx(1.0)
    clock.advance(1.0)
    assert await store.take([meter()]) == 0.0
    assert await store.take([meter()]) == pytest.approx(10.0)


async def test_each_key_has_its_own_count(backend: Backend) -> None:
    store = backend.rates()

    assert [await store.take([meter("ann", 1)]), await store.take([meter("bob", 1)])] == [0.0, 0.0]
    assert await store.take([meter("ann", 1)]) > 0


async def test_a_call_that_one_meter_refuses_counts_at_no_other(backend: Backend) -> None:
    store = backend.rates()
    await store.take([meter("ann", 1)])

    for _ in range(5):
        assert await store.take([meter("ann", 1), meter("all", 2)]) > 0
    assert [await store.take([meter("all", 2)]) for _ in range(2)] == [0.0, 0.0]
    assert await store.take([meter("all", 2)]) > 0


@pytest.mark.requirement("signing-in.rates")
async def test_processes_that_count_at_once_admit_no_more_than_the_limit(backend: Backend) -> None:
    stores = [backend.rates() for _ in range(4)]
    both = [meter("ann", 10), meter("all", 25)]

    waits = await asyncio.gather(*(stores[each % 4].take(both) for each in range(40)))

    assert sum(wait == 0.0 for wait in waits) == 10


@pytest.mark.parametrize("calls", [1, 7, 9, 49, 100])
async def test_sums_of_times_that_are_not_exact_take_no_call_away(
    backend: Backend, clock: FakeClock, calls: int
) -> None:
    clock.advance(1.7e9 + 1 / 3)
    store = backend.rates()

    assert [await store.take([meter(calls=calls, seconds=60)]) for _ in range(calls)] == [0.0] * calls
    assert await store.take([meter(calls=calls, seconds=60)]) > 0


async def test_a_clock_that_is_set_back_lets_nobody_wait_longer_than_the_limit_says(
    backend: Backend, clock: FakeClock
) -> None:
    clock.advance(1e6)
    store = backend.rates()
    while await store.take([meter()]) == 0.0:
        pass

    clock.advance(-3_600.0)

    assert await store.take([meter()]) == 0.0
    assert await store.take([meter()]) == pytest.approx(10.0)
    clock.advance(10.0)
    assert await store.take([meter()]) == 0.0


async def test_replicas_whose_clocks_differ_a_little_admit_no_more_than_the_limit(
    backend: Backend, clock: FakeClock
) -> None:
    clock.advance(1e6)
    store, passed = backend.rates(), 0

    for ahead in [2.0, -2.0] * 20:
        clock.advance(ahead)
        passed += await store.take([meter(calls=30)]) == 0.0

    assert passed <= 32
