from __future__ import annotations

import os
import sys
import threading
import time

import pytest

from pegboard.tenants.idle_thread import IdleThread


def policy() -> tuple[int, int]:
    return threading.get_ident(), os.sched_getscheduler(0)


@pytest.mark.skipif(sys.platform != "linux", reason="policies of Linux")
def test_work_takes_no_core_that_another_wants_and_the_caller_keeps_its_policy() -> None:
    before = policy()

    thread, said = IdleThread().run(policy)

    assert thread != threading.get_ident()
    assert said == os.SCHED_IDLE
    assert policy() == before


def test_the_piece_after_one_that_starved_runs_on_the_callers_thread() -> None:
    idle = IdleThread()
    pieces = [lambda: time.sleep(0.05), threading.get_ident, threading.get_ident]  # asleep is as good as starved

    _, second, third = (idle.run(piece) for piece in pieces)

    assert second == threading.get_ident()
    assert third != threading.get_ident()


def test_an_error_is_the_callers() -> None:
    with pytest.raises(ZeroDivisionError):
        IdleThread().run(lambda: 1 / 0)
