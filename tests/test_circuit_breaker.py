from __future__ import annotations

import logging

import pytest

from pegboard.circuit_breaker import Breaker
from pegboard.errors import EncoderError
from pegboard.testing import FakeClock


@pytest.fixture
def breaker(clock: FakeClock) -> Breaker[EncoderError]:
    return Breaker(clock, EncoderError, name="The encoder", rest=5, meanwhile="words rank")


def fail(breaker: Breaker[EncoderError]) -> None:
    with pytest.raises(EncoderError, match="down"), breaker.call():
        raise EncoderError("It is down.")


def test_a_service_that_failed_is_left_alone_until_its_rest_is_over(
    breaker: Breaker[EncoderError], clock: FakeClock
) -> None:
    fail(breaker)
    with pytest.raises(EncoderError, match="It is down"), breaker.call():
        pytest.fail("it was called")
    clock.advance(5)

    with breaker.call():
        pass
    with breaker.call():
        pass


def test_a_call_that_began_before_the_rest_and_fails_during_it_makes_it_no_longer(
    breaker: Breaker[EncoderError], clock: FakeClock
) -> None:
    slow = breaker.call()
    slow.__enter__()
    fail(breaker)
    clock.advance(4)
    assert not slow.__exit__(EncoderError, EncoderError("It is down."), None)
    clock.advance(1)

    with breaker.call():
        pass


def test_while_one_tries_it_again_all_others_are_refused(breaker: Breaker[EncoderError], clock: FakeClock) -> None:
    fail(breaker)
    clock.advance(5)

    with breaker.call(), pytest.raises(EncoderError), breaker.call():
        pytest.fail("two at once")


def test_an_error_of_another_kind_shows_that_the_service_answers(
    breaker: Breaker[EncoderError], clock: FakeClock
) -> None:
    fail(breaker)
    clock.advance(5)
    with pytest.raises(ValueError, match="refused"), breaker.call():
        raise ValueError("refused")

    with breaker.call():
        pass


def test_the_log_says_once_that_it_is_down_and_once_that_it_is_back(
    breaker: Breaker[EncoderError], clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        fail(breaker)
        clock.advance(5)
        fail(breaker)
        clock.advance(6)
        with breaker.call():
            pass

    assert [record.getMessage() for record in caplog.records] == [
        "It is down. Until it answers again, words rank.",
        "The encoder answers again, after 11 s.",
    ]


def test_a_call_that_began_before_it_came_back_and_fails_after_says_nothing_of_it_now(
    breaker: Breaker[EncoderError], clock: FakeClock
) -> None:
    slow = breaker.call()
    slow.__enter__()
    fail(breaker)
    clock.advance(5)
    with breaker.call():
        pass
    assert not slow.__exit__(EncoderError, EncoderError("It is down."), None)

    with breaker.call():
        pass


def test_an_answer_that_was_under_way_when_it_failed_does_not_show_that_it_is_back(
    breaker: Breaker[EncoderError], clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    early = breaker.call()
    early.__enter__()
    clock.advance(1)
    fail(breaker)
    early.__exit__(None, None, None)

    with pytest.raises(EncoderError, match="It is down"), breaker.call():
        pytest.fail("it was called")
    assert "answers again, after" not in caplog.text
