"""Floods of news and of progress: nobody drowns in them, and nobody else waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest
from mcp import Client

from faults import WAYS, MakeFaulty, over, resident
from pegboard.model import ToolId
from pegboard.upstreams import Fleet, server_requests
from pegboard.upstreams.server_requests import MOST_WAITING

OpenClient = Callable[..., AbstractAsyncContextManager[Client]]
MakeFleet = Callable[..., Fleet]

STREAMED = [way for way in WAYS if not way.json]
TOLD_OF_NEWS = [way for way in STREAMED if not way.modern]
"""In the 2026 era news come on a stream of their own: test_changing_servers.py has them."""
PROGRESS = ToolId("faulty", "progress")
ECHO = ToolId("faulty", "echo")


@over(*TOLD_OF_NEWS)
@pytest.mark.requirement("M18")
async def test_in_a_storm_of_a_thousand_announcements_calls_are_answered_and_nobody_is_told_of_no_change(
    fleet_of: MakeFleet, faulty: MakeFaulty
) -> None:
    changes: list[int] = []

    async def changed() -> None:
        changes.append(1)

    async with fleet_of(faulty(), on_change=changed) as fleet:
        await fleet.settled(60)
        storm = asyncio.create_task(fleet.call(ToolId("faulty", "storm"), {"n": 1000}))
        results = await asyncio.gather(*(fleet.call(ECHO, {"text": str(at)}) for at in range(50)))
        await storm
    assert [each["content"][0]["text"] for each in results] == [str(at) for at in range(50)]
    assert len(changes) == 1, "its first listing: nothing changed after that"


@over(*STREAMED)
@pytest.mark.requirement("M17")
async def test_every_report_of_progress_reaches_who_takes_it_before_the_result(
    client_of: OpenClient, faulty: MakeFaulty
) -> None:
    heard: list[float] = []

    async def hear(progress: float, _total: float | None, _message: str | None) -> None:
        heard.append(progress)

    async with client_of(faulty()) as client:
        await client.call_tool("progress", {"n": 50}, progress_callback=hear)
    assert heard == [float(step + 1) for step in range(50)]


@over(*STREAMED)
@pytest.mark.requirement("M15")
@pytest.mark.requirement("M22")
async def test_a_caller_who_takes_no_progress_holds_nobody_up_and_little_memory(
    fleet_of: MakeFleet, faulty: MakeFaulty
) -> None:
    """Six megabytes of reports, of which the first is taken and never let go of."""
    taken: list[float] = []

    async def stuck(progress: float, _total: float | None, _message: str | None) -> None:
        taken.append(progress)
        await asyncio.Event().wait()

    async with fleet_of(faulty()) as fleet:
        await fleet.settled(60)
        await fleet.call(PROGRESS, {"n": 1}, progress=_nothing)
        before = resident()
        flooded = asyncio.create_task(fleet.call(PROGRESS, {"n": 6000}, progress=stuck))
        for at in range(20):
            assert (await fleet.call(ECHO, {"text": str(at)}))["content"][0]["text"] == str(at)
        assert (await flooded)["content"]
        assert taken == [1.0]
        assert resident() - before < 10_000_000 + MOST_WAITING * 2000


@over(*STREAMED)
@pytest.mark.requirement("M17")
async def test_an_answer_in_time_is_not_lost_to_a_caller_who_takes_no_progress(
    fleet_of: MakeFleet, faulty: MakeFaulty, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time limit is the server's: that the caller is given longer for what came before the answer is not in it."""
    monkeypatch.setattr(server_requests, "LAST_WORDS", 8.0)

    async def stuck(_progress: float, _total: float | None, _message: str | None) -> None:
        await asyncio.Event().wait()

    async with fleet_of(faulty(), call_timeout=6.0) as fleet:
        await fleet.settled(60)
        assert (await fleet.call(PROGRESS, {"n": 1}, progress=stuck))["content"]


async def _nothing(_progress: float, _total: float | None, _message: str | None) -> None:
    """Takes it at once."""
