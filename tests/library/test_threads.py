"""Threads share one board whose tools change: on a free-threaded interpreter (`PYTHON_GIL=0`) they run at once."""

from __future__ import annotations

import os
import sysconfig
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, Event, Thread

import pytest

from pegboard import Board, Result, ToolId
from pegboard.library import runtime
from pegboard.testing import FakeEncoder

THREADS = 8
ROUNDS = 40 if sysconfig.get_config_var("Py_GIL_DISABLED") else 5
"""Threads that never wait for each other need more rounds to meet, and less time for them."""
FIXED = {"name": "high_tide", "description": "When the tide is high at a harbour"}


@pytest.mark.parametrize("profile", ["attention", "hybrid"])
def test_threads_route_and_search_while_others_add_and_remove_tools(profile: str) -> None:
    board, together = Board([FIXED], encoder=FakeEncoder(), profile=profile, k=3, threshold=0.0), Barrier(THREADS)

    def work(number: int) -> list[bool]:
        together.wait(60)
        seen = []
        for turn in range(ROUNDS):
            own = f"loan_{number}_{turn}"
            if number % 2:
                board.add_tools([{"name": own, "description": f"Renew loan {own}"}])
                seen.append(own in {tool.name for tool in board.catalog.tools})
                board.remove_tools([own])
            else:
                decision = board.route_now(f"high tide at harbour {turn}", session=own)
                found = board.search_now("high tide", session=own)
                seen += ["high_tide" in {tool.name for tool in decision.tools}, bool(found.tools)]
        return seen

    with board, ThreadPoolExecutor(THREADS) as pool:
        seen = [each for of in pool.map(work, range(THREADS)) for each in of]
        assert [tool.name for tool in board.catalog.tools] == ["high_tide"]
    assert all(seen)
    assert len(seen) == ROUNDS * THREADS // 2 * 3


def test_functions_that_use_the_board_do_not_wait_for_each_others_threads() -> None:
    functions = min(32, (os.cpu_count() or 1) + 4) + 1  # one more than the pool of a loop has threads
    all_run, answers = Barrier(functions), list[Result]()

    def sub_agent(task: str) -> str:
        """Delegates a task"""
        all_run.wait(60)
        return str([tool.name for tool in board.search_now(task).tools])

    board = Board([sub_agent, FIXED], encoder=FakeEncoder())
    board.route_now("high tide")

    def work() -> None:
        answers.append(board.call_now(ToolId("local", "sub_agent"), {"task": "when the tide is high"}))

    threads = [Thread(target=work, daemon=True) for _ in range(functions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)

    assert [(each.is_error, "high_tide" in each.text) for each in answers] == [(False, True)] * functions
    board.close()


def test_a_board_that_is_closed_beside_its_use_opens_again_whole() -> None:
    board, ended = Board([FIXED], encoder=FakeEncoder()), Event()
    board.route_now("high tide")

    def use() -> None:
        while not ended.is_set():
            with suppress(CancelledError):
                board.route_now("high tide")

    with ThreadPoolExecutor(2) as pool:
        users = [pool.submit(use) for _ in range(2)]
        for _ in range(20):
            board.close()
        ended.set()
    assert [each.result() for each in users] == [None, None]
    board.close()
    assert [tool.name for tool in board.route_now("high tide").tools] == ["high_tide"]
    board.close()


def test_a_board_whose_closing_fails_is_closed_and_the_others_too(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken_fleet() -> None:
        raise OSError("no servers")

    monkeypatch.setattr(runtime, "_fleet", broken_fleet)
    whole = Board([FIXED], encoder=FakeEncoder())
    broken = Board([FIXED], encoder=FakeEncoder(), config={"servers": {"none": {"command": "true"}}})
    for _ in range(2):
        with pytest.raises(OSError, match="no servers"):
            broken.route_now("high tide")
        with pytest.raises(OSError, match="no servers"):
            broken.close()
        broken.close()
    with pytest.raises(OSError, match="no servers"):
        broken.route_now("high tide")
    whole.route_now("high tide")
    runtime._close_all()

    assert "A board could not be closed cleanly" in caplog.text
    assert not any(each._shared._portal.started for each in (broken, whole))
