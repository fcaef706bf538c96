from __future__ import annotations

import asyncio
import logging

import pytest

from pegboard.circuit_breaker import Breaker
from pegboard.errors import SessionConflict, StoreError
from pegboard.stores.backend import store_breaker
from pegboard.testing import FakeClock

DOWN = StoreError("Redis at box:6379/0 cannot be used: refused.", remedy="Check that it runs.")


@pytest.fixture
def breaker(clock: FakeClock) -> Breaker[StoreError]:
    return store_breaker(clock, rest=1.0)


def fail(breaker: Breaker[StoreError]) -> None:
    with pytest.raises(StoreError), breaker.call():
        raise DOWN


def refused(breaker: Breaker[StoreError]) -> StoreError:
    """What the breaker says without asking the store."""
    with pytest.raises(StoreError) as caught, breaker.call():
        pytest.fail("the store was asked")
    return caught.value


def test_a_store_that_works_is_always_asked(breaker: Breaker[StoreError], caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        with breaker.call():
            pass

    assert caplog.records == []


def test_a_store_that_failed_is_left_alone_for_a_moment_with_its_own_error(
    breaker: Breaker[StoreError], clock: FakeClock
) -> None:
    fail(breaker)
    clock.advance(0.99)

    assert (refused(breaker).message, refused(breaker).remedy) == (DOWN.message, DOWN.remedy)


def test_it_is_said_once_that_a_store_is_down_and_once_that_it_is_back(
    breaker: Breaker[StoreError], clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        fail(breaker)
        refused(breaker)
        clock.advance(4)
    with breaker.call():
        pass
    with breaker.call():
        pass

    down, back = (record.getMessage() for record in caplog.records if record.levelno == logging.WARNING)
    assert down.startswith(str(DOWN))
    assert "calls under a spend limit are refused" in down
    assert back == "The store answers again, after 12 s."


def test_after_the_rest_one_call_at_a_time_tries_it(breaker: Breaker[StoreError], clock: FakeClock) -> None:
    fail(breaker)
    clock.advance(1)

    with breaker.call():
        refused(breaker)
    with breaker.call(), breaker.call():
        pass


def test_a_try_that_fails_begins_the_rest_anew(breaker: Breaker[StoreError], clock: FakeClock) -> None:
    fail(breaker)
    clock.advance(1)
    fail(breaker)
    clock.advance(0.5)

    refused(breaker)
    clock.advance(0.5)
    with breaker.call():
        pass


async def test_a_try_that_is_cancelled_makes_room_for_another(breaker: Breaker[StoreError], clock: FakeClock) -> None:
    fail(breaker)
    clock.advance(1)
    trying = asyncio.Event()

    async def hang() -> None:
        with breaker.call():
            trying.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(hang())
    await trying.wait()
    refused(breaker)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    with breaker.call():
        pass
    with breaker.call(), breaker.call():
        pass


def test_an_answer_that_is_a_refusal_is_an_answer(breaker: Breaker[StoreError], clock: FakeClock) -> None:
    fail(breaker)
    clock.advance(1)
    with pytest.raises(SessionConflict), breaker.call():
        raise SessionConflict

    with breaker.call(), breaker.call():
        pass
