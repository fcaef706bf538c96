"""Servers that are killed, stop, flap or do not read: the others serve on, and nothing of them is left."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable

import pytest

from faults import PIPES, WAYS, MakeFaulty, descriptors, over
from pegboard.errors import UpstreamError
from pegboard.model import ToolId
from pegboard.settings.server_spec import ServerSpec
from pegboard.upstreams import Fleet
from processes import alive, descendants, until

MakeFleet = Callable[..., Fleet]

RESTARTS = 100


async def say(fleet: Fleet, tool: str, server: str = "faulty", /, **arguments: object) -> str:
    result = await fleet.call(ToolId(server, tool), arguments)
    return str(result["content"][0]["text"])


@over(*PIPES)
@pytest.mark.requirement("M23")
async def test_a_server_killed_among_calls_fails_those_and_no_other_servers(
    fleet_of: MakeFleet, faulty: MakeFaulty
) -> None:
    async with fleet_of(faulty(), faulty("other")) as fleet:
        await fleet.settled(60)
        pid = int(await say(fleet, "pid"))
        lost = [asyncio.create_task(say(fleet, "hang")) for _ in range(5)]
        kept = [asyncio.create_task(say(fleet, "late", "other", text=str(at), n=300)) for at in range(20)]
        await asyncio.sleep(0.1)  # they are under way
        os.kill(pid, signal.SIGKILL)
        failures = await asyncio.gather(*lost, return_exceptions=True)
        assert all(isinstance(each, UpstreamError) and "closed the connection" in str(each) for each in failures)
        assert await asyncio.gather(*kept) == [str(at) for at in range(20)]
        assert int(await say(fleet, "pid")) != pid, "a call waits for the restart"


@pytest.mark.requirement("M22")
@pytest.mark.requirement("M23")
async def test_a_server_that_stops_keeps_no_call_beyond_its_deadline_and_is_found_out(
    fleet_of: MakeFleet, faulty: MakeFaulty
) -> None:
    """On stdio it is started again; on HTTP, where it is not ours to start, it is unhealthy until it answers."""
    spec = faulty()
    async with fleet_of(spec, call_timeout=2.0, health_timeout=2.0, connect_timeout=10.0) as fleet:
        await fleet.settled(60)
        pid = int(await say(fleet, "pid"))
        started = time.monotonic()
        with pytest.raises(UpstreamError, match=r"did not answer within 2 s"):
            await say(fleet, "freeze")
        assert time.monotonic() - started < 60
        if spec.is_http:
            await until(lambda: fleet.status()[0].state == "unhealthy")
            assert "did not respond for 2 s" in fleet.status()[0].reason
            os.kill(pid, signal.SIGCONT)
        else:
            await until(lambda: not alive(pid))
        await until(lambda: fleet.status()[0].state == "ready")
        assert await say(fleet, "echo", text="back") == "back"


@pytest.mark.requirement("M23")
async def test_a_server_that_is_slow_with_one_call_and_answers_others_is_left_alone(
    fleet_of: MakeFleet, faulty: MakeFaulty
) -> None:
    async with fleet_of(faulty(), call_timeout=2.0, health_timeout=5.0) as fleet:
        await fleet.settled(60)
        pid = await say(fleet, "pid")
        for _ in range(3):
            with pytest.raises(UpstreamError, match="did not answer"):
                await say(fleet, "hang")
        assert await say(fleet, "pid") == pid


@over(*PIPES)
@pytest.mark.requirement("M22")
async def test_a_server_that_reads_nothing_keeps_no_call_beyond_its_deadline(
    fleet_of: MakeFleet, faulty: MakeFaulty
) -> None:
    """Arguments beyond what a pipe holds: to write them takes for ever."""
    async with fleet_of(faulty(), call_timeout=1.0, health_timeout=60.0) as fleet:
        await fleet.settled(60)
        pid = int(await say(fleet, "pid"))
        os.kill(pid, signal.SIGSTOP)
        started = time.monotonic()
        calls = [say(fleet, "echo", text="x" * 1_000_000) for _ in range(3)]
        failures = await asyncio.gather(*calls, return_exceptions=True)
        assert all("did not answer within 1 s" in str(each) for each in failures)
        assert time.monotonic() - started < 60
        os.kill(pid, signal.SIGCONT)


@over(*PIPES)
@pytest.mark.requirement("M23")
async def test_a_server_that_dies_with_every_call_is_there_for_the_next_and_harms_no_other(
    fleet_of: MakeFleet, faulty: MakeFaulty
) -> None:
    async with fleet_of(faulty(), faulty("other"), lazy=True) as fleet:
        await fleet.settled(60)
        for number in range(5):
            with pytest.raises(UpstreamError, match="closed the connection"):
                await say(fleet, "die")
            assert await say(fleet, "echo", "other", text=str(number)) == str(number)
        assert await say(fleet, "echo", text="there") == "there"


@over(*PIPES)
@pytest.mark.timeout(600)
@pytest.mark.requirement("M13")
async def test_a_hundred_restarts_leave_no_process_and_no_descriptor(fleet_of: MakeFleet, faulty: MakeFaulty) -> None:
    """Half of the servers are killed, half end on demand, and each had a child of its own."""
    ours = set(descendants(os.getpid()))
    async with fleet_of(faulty(), lazy=True, idle_stop=600.0) as fleet:
        await fleet.settled(60)
        await say(fleet, "pid")
        before = descriptors()
        pids, children = set(), set()
        for number in range(RESTARTS // len(PIPES)):
            pids.add(int(await say(fleet, "pid")))
            children.add(int(await say(fleet, "child")))
            if number % 2:
                with pytest.raises(UpstreamError):
                    await say(fleet, "die")
            else:
                os.kill(max(pids & set(descendants(os.getpid()))), signal.SIGTERM)
                await until(lambda: fleet.status()[0].state != "ready")
        assert len(pids) == len(children) == RESTARTS // len(PIPES)
        await say(fleet, "pid")
        await until(lambda: not any(map(alive, children)))
        await until(lambda: descriptors() <= before)
    await until(lambda: set(descendants(os.getpid())) <= ours)
    assert not any(map(alive, pids))


@over(PIPES[0])
@pytest.mark.requirement("M13")
async def test_with_the_watcher_of_a_server_killed_the_server_and_its_children_end_and_it_starts_again(
    fleet_of: MakeFleet, faulty: MakeFaulty
) -> None:
    async with fleet_of(faulty()) as fleet:
        await fleet.settled(60)
        pid, child = int(await say(fleet, "pid")), int(await say(fleet, "child"))
        watcher = next(each for each in descendants(os.getpid()) if pid in descendants(each))
        os.kill(watcher, signal.SIGKILL)
        await until(lambda: not alive(pid) and not alive(child))
        await until(lambda: fleet.status()[0].state != "ready")
        await until(lambda: fleet.status()[0].state == "ready")
        assert int(await say(fleet, "pid")) != pid


@over(*(way for way in WAYS if way.http))
@pytest.mark.requirement("M23")
async def test_an_http_server_that_cannot_be_reached_is_unhealthy_and_the_others_serve(
    fleet_of: MakeFleet, faulty: MakeFaulty
) -> None:
    gone = ServerSpec(name="gone", url="http://127.0.0.1:9/mcp")
    async with fleet_of(faulty(), gone) as fleet:
        await fleet.settled(60)
        with pytest.raises(UpstreamError, match="broke off its answer"):
            await say(fleet, "die")
        await until(lambda: fleet.status()[0].state == "unhealthy")
        assert [each.state for each in fleet.status()] == ["unhealthy", "unhealthy"]
