from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

import pytest

from pegboard.stores.write_behind import WriteBehind


def test_what_is_handed_over_is_written_in_its_order_and_whole_when_it_is_closed() -> None:
    written: list[int] = []
    behind = WriteBehind(written.extend, what="a list", most=1000)
    for number in range(500):
        behind.put(number)

    behind.close()

    assert written == list(range(500))


def test_nobody_waits_for_the_one_who_writes_and_what_is_too_much_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    go, written, begun = threading.Event(), list[str](), threading.Event()

    def write(some: Sequence[str]) -> None:
        begun.set()
        go.wait()
        written.extend(some)

    behind = WriteBehind(write, what="a list", most=10)
    behind.put("first", 4)
    begun.wait()
    for text in ("second", "third", "fourth"):
        behind.put(text, 5)
    go.set()
    behind.close()

    assert written == ["first", "second"]
    assert [record.getMessage() for record in caplog.records] == [
        "Items of a list were dropped: items arrive faster than they can be written"
    ]


def test_one_thing_that_is_larger_than_all_that_may_wait_is_written() -> None:
    written: list[str] = []
    behind = WriteBehind(written.extend, what="a list", most=10)
    behind.put("large", 1000)
    behind.close()

    assert written == ["large"]


def test_a_failure_is_told_once_until_it_goes_well_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    outcomes = iter([OSError("full"), OSError("full"), None, OSError("full")])
    written, tried = list[int](), threading.Semaphore(0)

    def write(some: Sequence[int]) -> None:
        tried.release()
        if error := next(outcomes):
            raise error
        written.extend(some)

    behind = WriteBehind(write, what="a file", most=10)
    for number in range(4):
        behind.put(number)
        tried.acquire()
    behind.close()

    assert written == [2]
    assert [record.getMessage() for record in caplog.records] == ["Items of a file were dropped: full"] * 2
