"""A changed configuration, with real processes: what did not change is not touched."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from journals import Journal
from pegboard.errors import UpstreamError
from pegboard.events import ServerChanged
from pegboard.model import ToolId
from pegboard.settings.server_spec import ServerSpec
from pegboard.stores import MemoryEvents
from pegboard.upstreams import Changes, Fleet
from processes import alive, eventually, until

MakeFleet = Callable[..., Fleet]

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="process groups are POSIX"),
    pytest.mark.requirement("M27"),
]


@pytest.fixture
def journal(tmp_path: Path) -> Callable[[str], Journal]:
    return lambda name: Journal(name, tmp_path)


async def pid_of(fleet: Fleet, server: str) -> int:
    result = await fleet.call(ToolId(server, "pid"), {})
    return int(result["content"][0]["text"])


def configured(*specs: ServerSpec) -> dict[str, ServerSpec]:
    return {spec.name: spec for spec in specs}


async def test_only_what_changed_is_started_ended_or_restarted(
    fleet_of: MakeFleet, journal: Callable[[str], Journal]
) -> None:
    stays, changes, goes, comes = map(journal, ("stays", "changes", "goes", "comes"))
    async with fleet_of(stays.spec(), changes.spec(), goes.spec()) as fleet:
        await fleet.settled(60)
        before = {name: await pid_of(fleet, name) for name in ("stays", "changes", "goes")}
        done = await fleet.apply(configured(comes.spec(), changes.spec("pid", "more"), stays.spec()))
        assert not alive(before["goes"])
        assert not alive(before["changes"])
        assert [status.name for status in fleet.status()] == ["comes", "changes", "stays"]
        assert await fleet.settled(60)
        after = {name: await pid_of(fleet, name) for name in ("comes", "changes", "stays")}
        tools = [str(tool.id) for tool in fleet.catalog().tools]
    assert done == Changes(added=("comes",), removed=("goes",), restarted=("changes",))
    assert after["stays"] == before["stays"]
    assert after["changes"] != before["changes"]
    assert stays.starts == [before["stays"]]
    assert tools == ["comes/pid", "changes/pid", "changes/more", "stays/pid"]
    assert not any(map(alive, after.values()))


async def test_the_same_configuration_again_changes_nothing(
    fleet_of: MakeFleet, journal: Callable[[str], Journal], events: MemoryEvents
) -> None:
    first = journal("first")
    async with fleet_of(first.spec()) as fleet:
        await fleet.settled(60)
        seen = len(events)
        assert await fleet.apply(configured(first.spec())) == Changes()
        assert len(events) == seen
    assert len(first.starts) == 1


async def test_the_board_follows_and_the_server_that_is_gone_is_told_of(
    fleet_of: MakeFleet, journal: Callable[[str], Journal], events: MemoryEvents
) -> None:
    catalogs: list[list[str]] = []

    async def look() -> None:
        catalogs.append([str(tool.id) for tool in fleet.catalog().tools])

    fleet = fleet_of(journal("one").spec(), journal("two").spec(), on_change=look)
    async with fleet:
        await fleet.settled(60)
        await fleet.apply(configured(journal("two").spec()))
        assert catalogs[-1] == ["two/pid"]
        with pytest.raises(UpstreamError, match="No server 'one' is configured"):
            await fleet.call(ToolId("one", "pid"), {})
    assert [event.server for event in events.of(ServerChanged) if event.state == "stopped"] == ["one"]  # type: ignore[attr-defined]


async def test_a_call_under_way_at_a_server_that_is_removed_ends_with_an_error(
    fleet_of: MakeFleet, journal: Callable[[str], Journal]
) -> None:
    busy = journal("busy")
    async with fleet_of(busy.spec("hang")) as fleet:
        await fleet.settled(60)
        call = asyncio.create_task(fleet.call(ToolId("busy", "hang"), {}))
        await until(lambda: "tools/call" in busy.methods)
        await fleet.apply({})
        with pytest.raises(UpstreamError, match="was stopped during the call"):
            await asyncio.wait_for(call, 60)
    assert not alive(busy.starts[0])


async def test_a_call_that_waits_for_a_server_that_is_removed_ends_with_an_error(
    fleet_of: MakeFleet, journal: Callable[[str], Journal]
) -> None:
    slow = journal("slow")
    async with fleet_of(slow.spec(env={"PLAIN_MUTE": "1"})) as fleet:
        call = asyncio.create_task(fleet.call(ToolId("slow", "pid"), {}))
        await until(lambda: bool(slow.starts))
        await fleet.apply({})
        with pytest.raises(UpstreamError, match="is stopped"):
            await asyncio.wait_for(call, 60)
    assert eventually(lambda: not alive(slow.starts[0]))


async def test_a_server_that_is_restarted_keeps_its_tools_until_it_lists_others(
    fleet_of: MakeFleet, journal: Callable[[str], Journal]
) -> None:
    first = journal("first")
    async with fleet_of(first.spec("pid")) as fleet:
        await fleet.settled(60)
        await fleet.apply(configured(first.spec("other")))
        assert [tool.name for tool in fleet.catalog().tools] in (["pid"], ["other"])
        await until(lambda: fleet.status()[0].state == "ready")
        assert [tool.name for tool in fleet.catalog().tools] == ["other"]


async def test_a_servers_own_tool_is_called_whatever_its_name_while_it_is_restarted(
    fleet_of: MakeFleet, journal: Callable[[str], Journal]
) -> None:
    first = journal("first")
    async with fleet_of(first.spec("sign_in")) as fleet:
        await fleet.settled(60)
        await fleet.apply(configured(first.spec("sign_in", "more")))
        result = await fleet.call(ToolId("first", "sign_in"), {})
    assert result["content"][0]["text"] == str(first.starts[-1])


async def test_a_server_that_cannot_start_does_not_hold_the_others_up(
    fleet_of: MakeFleet, journal: Callable[[str], Journal]
) -> None:
    mute, well = journal("mute"), journal("well")
    async with fleet_of(mute.spec(env={"PLAIN_MUTE": "1"})) as fleet:
        await fleet.apply(configured(mute.spec(env={"PLAIN_MUTE": "2"}), well.spec()))
        assert await pid_of(fleet, "well") in well.starts
        assert fleet.status()[0].state == "starting"
