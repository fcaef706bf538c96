"""Indexes of large boards are built one at a time, and leave threads for all others."""

from __future__ import annotations

import asyncio
from threading import Event, current_thread

import pytest

from pegboard.retrieval.index_thread import MANY, on_index_thread

SECONDS = 60
FLOOD = 100
"""More than asyncio has threads."""


@pytest.mark.requirement("D7")
async def test_large_boards_wait_for_each_other_and_a_small_one_for_none() -> None:
    go, at_work, most = Event(), 0, 0

    def large() -> str:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        assert go.wait(SECONDS)
        at_work -= 1
        return current_thread().name

    flood = [asyncio.create_task(on_index_thread(MANY + 1, large)) for _ in range(FLOOD)]
    try:
        async with asyncio.timeout(SECONDS):
            assert await on_index_thread(MANY, lambda: "small") == "small"
            assert await asyncio.to_thread(lambda: "file") == "file"
    finally:
        go.set()
    assert len(set(await asyncio.gather(*flood))) == 1
    assert most == 1


async def test_what_goes_wrong_reaches_the_caller() -> None:
    def fails() -> None:
        raise ValueError("no tools")

    for tools in (1, MANY + 1):
        with pytest.raises(ValueError, match="no tools"):
            await on_index_thread(tools, fails)
