"""Threads share one board whose tools change: on a free-threaded interpreter (`PYTHON_GIL=0`) they run at once."""

from __future__ import annotations

import sysconfig
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from pegboard import Board
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
