"""A value that is computed once for each instance, on whatever thread."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from pegboard.cached_property import cached_property

SOURCE = Path(__file__).parents[1] / "src" / "pegboard"
SECONDS = 60


class Board:
    """Takes until ``go`` to compute its index."""

    def __init__(self, go: Event) -> None:
        self.begun = Event()
        self.computed = 0
        self._go = go

    @cached_property
    def index(self) -> object:
        self.begun.set()
        assert self._go.wait(SECONDS)
        self.computed += 1
        return object()


@pytest.mark.requirement("D7")
def test_who_computes_holds_up_no_other_instance() -> None:
    go, at_once = Event(), Event()
    at_once.set()
    large, small = Board(go), Board(at_once)
    with ThreadPoolExecutor(2) as threads:
        long = threads.submit(lambda: large.index)
        assert large.begun.wait(SECONDS)
        try:
            assert threads.submit(lambda: small.index).result(SECONDS) is small.index
        finally:
            go.set()
        assert long.result(SECONDS) is large.index


def test_threads_that_ask_at_once_are_given_one_value() -> None:
    go = Event()
    board = Board(go)
    with ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(lambda: board.index) for _ in range(4)]
        assert board.begun.wait(SECONDS)
        go.set()
        assert {id(each.result(SECONDS)) for each in asked} == {id(board.index)}
    assert board.computed == 1
    assert vars(board).keys() == {"begun", "computed", "_go", "index"}


def test_a_value_that_could_not_be_computed_is_tried_again() -> None:
    class Late:
        tries = 0

        @cached_property
        def value(self) -> int:
            self.tries += 1
            if self.tries == 1:
                raise OSError("not yet")
            return self.tries

    late = Late()
    with pytest.raises(OSError, match="not yet"):
        _ = late.value
    assert (late.value, late.value) == (2, 2)


@pytest.mark.requirement("D7")
def test_no_other_one_is_used() -> None:
    found = [
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if re.search(r"functools import .*cached_property|functools\.cached_property\(", path.read_text("utf-8"))
    ]
    assert found == ["cached_property.py"]
