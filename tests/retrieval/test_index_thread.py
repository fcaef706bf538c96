"""Indexes of large boards are built one at a time, and leave threads for all others. Nobody waits for what is built."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Event, current_thread

import pytest

from index_threads import SECONDS, busy
from pegboard.catalog import Catalog
from pegboard.compose import build_routing, default_parts
from pegboard.model import Server, ServerName
from pegboard.retrieval.index_thread import LARGE, MANY, on_index_thread
from pegboard.settings import Settings
from pegboard.testing import FakeEncoder, fake_tool

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


@pytest.mark.requirement("D7")
async def test_boards_of_hundreds_of_tools_do_not_wait_for_those_of_thousands() -> None:
    async with busy(LARGE), asyncio.timeout(SECONDS):
        assert await on_index_thread(LARGE - 1, lambda: "hundreds") == "hundreds"


@pytest.mark.requirement("D7")
@pytest.mark.parametrize("profile", ["hybrid", "keyword"])
async def test_what_is_built_is_not_waited_for(tmp_path: Path, profile: str) -> None:
    tools = [fake_tool(f"tide_{number}", "When the tide comes", server="sea") for number in range(MANY + 1)]
    catalog = Catalog.build([(Server(name=ServerName("sea")), tools)])
    settings = Settings(profile=profile, cache_dir=tmp_path, state_dir=tmp_path)
    parts = default_parts(settings, encoder=FakeEncoder())
    board = build_routing(settings, catalog, parts=parts)
    await board.warm()
    index = await board.search_index()

    async with busy(MANY + 1), asyncio.timeout(SECONDS):
        await board.index_words()
        assert await board.search_index() is index
        assert (await board.route("tide_7")).candidates[0].tool.name == "tide_7"
    await parts.close()


async def test_what_goes_wrong_reaches_the_caller() -> None:
    def fails() -> None:
        raise ValueError("no tools")

    for tools in (1, MANY + 1):
        with pytest.raises(ValueError, match="no tools"):
            await on_index_thread(tools, fails)
