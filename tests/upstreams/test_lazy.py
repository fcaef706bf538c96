"""Servers that start with their first call and end when nobody calls them, with real processes."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from journals import Journal
from pegboard.errors import ConfigError, UpstreamError
from pegboard.events import ServerChanged
from pegboard.model import ToolId
from pegboard.protocols import Listing
from pegboard.settings.server_spec import ServerSpec
from pegboard.stores import MemoryDefinitions, MemoryEvents, SqliteDefinitions
from pegboard.testing import FakeClock
from pegboard.upstreams import Fleet
from processes import alive, until
from upstream_specs import python

MakeFleet = Callable[..., Fleet]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="process groups are POSIX")

PID = ToolId("plain", "pid")


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal("plain", tmp_path)


@pytest.fixture
def definitions() -> MemoryDefinitions:
    return MemoryDefinitions()


@pytest.fixture
def lazy_fleet(fleet_of: MakeFleet, definitions: MemoryDefinitions) -> MakeFleet:
    """Real time passes no idle server by: the clock is a fake one, and `Fleet.stop_idle` looks at it."""

    def make(*specs: ServerSpec, **options: object) -> Fleet:
        return fleet_of(*specs, **({"definitions": definitions, "lazy": True, "idle_stop": 600.0} | options))

    return make


async def known(fleet_of: MakeFleet, definitions: MemoryDefinitions, *specs: ServerSpec) -> None:
    """List the servers once, as an earlier run would have."""
    async with fleet_of(*specs, definitions=definitions) as fleet:
        await fleet.settled(60)


def key_of(spec: ServerSpec) -> str:
    return spec.expanded(os.environ).identity()


def state(fleet: Fleet) -> str:
    return fleet.status()[0].state


@pytest.mark.requirement("M19")
async def test_a_lazy_server_that_was_listed_before_is_known_without_being_started(
    fleet_of: MakeFleet, lazy_fleet: MakeFleet, definitions: MemoryDefinitions, journal: Journal
) -> None:
    await known(fleet_of, definitions, journal.spec("pid", "other"))
    async with lazy_fleet(journal.spec("pid", "other")) as fleet:
        assert await fleet.settled(60)
        status = fleet.status()[0]
        catalog = fleet.catalog()
    assert (status.state, status.tools, status.available) == ("idle", 2, True)
    assert [tool.name for tool in catalog.tools] == ["pid", "other"]
    assert catalog.servers["plain"].description == "Plain"  # type: ignore[index]
    assert len(journal.starts) == 1, "the run before"


async def test_a_lazy_server_that_was_never_listed_is_started_once_for_it(
    lazy_fleet: MakeFleet, journal: Journal, clock: FakeClock
) -> None:
    async with lazy_fleet(journal.spec()) as fleet:
        assert await fleet.settled(60)
        assert state(fleet) == "ready"
        clock.advance(601)
        await fleet.stop_idle()
        assert state(fleet) == "idle"
        assert [tool.name for tool in fleet.catalog().tools] == ["pid"]
        await until(lambda: not alive(journal.starts[0]))
    assert len(journal.starts) == 1


async def test_the_first_calls_start_it_once_and_wait_for_it(
    fleet_of: MakeFleet, lazy_fleet: MakeFleet, definitions: MemoryDefinitions, journal: Journal, events: MemoryEvents
) -> None:
    await known(fleet_of, definitions, journal.spec())
    before = len(events)
    async with lazy_fleet(journal.spec()) as fleet:
        results = await asyncio.gather(*(fleet.call(PID, {}) for _ in range(20)))
    pids = {int(result["content"][0]["text"]) for result in results}
    assert pids == {journal.starts[1]}
    assert len(journal.starts) == 2
    assert [event.state for event in events.of(ServerChanged)][before:] == ["idle", "ready"]  # type: ignore[attr-defined]


async def test_it_ends_when_nobody_has_called_it_and_comes_back_for_the_next_call(
    lazy_fleet: MakeFleet, journal: Journal, clock: FakeClock
) -> None:
    async with lazy_fleet(journal.spec()) as fleet:
        await fleet.call(PID, {})
        clock.advance(400)
        await fleet.call(PID, {})
        clock.advance(400)
        await fleet.stop_idle()
        assert state(fleet) == "ready", "the second call was 400 seconds ago"
        clock.advance(200)
        await fleet.stop_idle()
        assert state(fleet) == "idle"
        again = await fleet.call(PID, {})
        assert [tool.name for tool in fleet.catalog().tools] == ["pid"]
    assert int(again["content"][0]["text"]) == journal.starts[1]


async def test_the_fleet_itself_looks_for_idle_servers(
    lazy_fleet: MakeFleet, journal: Journal, clock: FakeClock
) -> None:
    async with lazy_fleet(journal.spec(), idle_stop=0.2) as fleet:
        await fleet.settled(60)
        assert state(fleet) == "ready"
        clock.advance(0.2)
        await until(lambda: state(fleet) == "idle")


async def test_it_does_not_end_while_a_call_is_under_way(
    lazy_fleet: MakeFleet, journal: Journal, clock: FakeClock
) -> None:
    async with lazy_fleet(journal.spec("hang")) as fleet:
        await fleet.settled(60)
        call = asyncio.create_task(fleet.call(ToolId("plain", "hang"), {}))
        await until(lambda: "tools/call" in journal.methods)
        clock.advance(10_000)
        await fleet.stop_idle()
        assert state(fleet) == "ready"
        call.cancel()
        await asyncio.wait([call])


@pytest.mark.parametrize("options", [{"idle_stop": 0.0}, {"lazy": False}])
async def test_a_server_that_is_not_lazy_or_may_idle_for_ever_is_never_ended(
    lazy_fleet: MakeFleet, journal: Journal, clock: FakeClock, options: dict[str, object]
) -> None:
    async with lazy_fleet(journal.spec(), **options) as fleet:
        await fleet.settled(60)
        clock.advance(10_000)
        await fleet.stop_idle()
        assert state(fleet) == "ready"


async def test_a_server_says_for_itself_whether_it_is_lazy(
    fleet_of: MakeFleet, lazy_fleet: MakeFleet, definitions: MemoryDefinitions, tmp_path: Path
) -> None:
    eager, lazy = Journal("eager", tmp_path), Journal("lazy", tmp_path)
    await known(fleet_of, definitions, eager.spec(), lazy.spec())
    async with lazy_fleet(eager.spec(lazy=False), lazy.spec(lazy=True), lazy=False) as fleet:
        await until(lambda: [status.state for status in fleet.status()] == ["ready", "idle"])


async def test_tools_that_changed_while_it_was_not_running_are_taken_up_when_it_starts(
    fleet_of: MakeFleet, lazy_fleet: MakeFleet, definitions: MemoryDefinitions, journal: Journal
) -> None:
    await known(fleet_of, definitions, journal.spec())
    key = key_of(journal.spec())
    old = await definitions.get(key)
    assert old is not None
    await definitions.put(key, replace(old, pages=({"tools": [{"name": "gone", "inputSchema": {}}]},)))
    lists: list[list[str]] = []

    async def look() -> None:
        lists.append([tool.name for tool in fleet.catalog().tools])

    fleet = lazy_fleet(journal.spec(), on_change=look)
    async with fleet:
        await fleet.settled(60)
        assert lists == [["gone"]]
        await fleet.call(PID, {})
        assert lists[-1] == ["pid"]
        await fleet.settled(60)
    assert await definitions.get(key) == old


async def test_a_lazy_server_that_cannot_start_says_why_and_is_tried_again_by_the_next_call(
    fleet_of: MakeFleet, lazy_fleet: MakeFleet, definitions: MemoryDefinitions, tmp_path: Path
) -> None:
    program = tmp_path / "server"
    journal = Journal("plain", tmp_path)
    spec = journal.spec().model_copy(update={"command": str(program)})
    program.symlink_to(sys.executable)
    await known(fleet_of, definitions, spec)
    program.unlink()
    async with lazy_fleet(spec) as fleet:
        await fleet.settled(60)
        assert state(fleet) == "idle"
        with pytest.raises(UpstreamError, match=r"is unhealthy: The command .* was not found"):
            await fleet.call(PID, {})
        assert state(fleet) == "unhealthy"
        program.symlink_to(sys.executable)
        assert await fleet.call(PID, {})
        assert state(fleet) == "ready"


async def test_a_lazy_server_that_does_not_answer_in_time_is_an_error_for_who_called(
    fleet_of: MakeFleet, lazy_fleet: MakeFleet, definitions: MemoryDefinitions, journal: Journal
) -> None:
    environment = {"MUTE": ""}
    spec = journal.spec(env={"PLAIN_MUTE": "${MUTE}"})
    listing = Listing(introduction={}, pages=({"tools": [{"name": "pid"}]},), protocol="2025-11-25")
    await definitions.put(spec.expanded(environment | {"MUTE": "1"}).identity(), listing)
    async with lazy_fleet(spec, environment={"MUTE": "1"}, connect_timeout=0.5) as fleet:
        await fleet.settled(60)
        with pytest.raises(UpstreamError, match=r"No answer within 0.5 s"):
            await fleet.call(PID, {})


async def test_a_lazy_server_that_ended_by_itself_is_idle_and_started_by_the_next_call(
    lazy_fleet: MakeFleet, journal: Journal
) -> None:
    async with lazy_fleet(journal.spec("pid", "exit")) as fleet:
        await fleet.settled(60)
        with pytest.raises(UpstreamError, match="closed the connection during the call"):
            await fleet.call(ToolId("plain", "exit"), {})
        await until(lambda: state(fleet) == "idle")
        assert await fleet.call(PID, {})
    assert len(journal.starts) == 2


@pytest.mark.requirement("M19")
async def test_a_server_of_the_handshake_era_is_probed_once_and_never_again(
    fleet_of: MakeFleet, lazy_fleet: MakeFleet, definitions: MemoryDefinitions, journal: Journal, clock: FakeClock
) -> None:
    await known(fleet_of, definitions, journal.spec())
    assert journal.methods.count("server/discover") == 1
    async with lazy_fleet(journal.spec()) as fleet:
        await fleet.call(PID, {})
        clock.advance(601)
        await fleet.stop_idle()
        await fleet.call(PID, {})
    async with fleet_of(journal.spec(), definitions=definitions) as fleet:
        await until(lambda: state(fleet) == "ready")
        assert fleet.status()[0].protocol == "2025-11-25"
    assert len(journal.starts) == 4
    assert journal.methods.count("server/discover") == 1


async def test_a_server_that_no_longer_speaks_the_era_it_spoke_is_asked_once_more(
    fleet_of: MakeFleet, definitions: MemoryDefinitions, journal: Journal
) -> None:
    spec = journal.spec(env={"PLAIN_MODERN": "1"})
    await known(fleet_of, definitions, spec)
    key = key_of(spec)
    listing = await definitions.get(key)
    assert listing is not None
    assert listing.protocol == "2026-07-28"
    await definitions.put(key, replace(listing, protocol="2025-11-25"))
    async with fleet_of(spec, definitions=definitions) as fleet:
        await until(lambda: state(fleet) == "ready")
        assert fleet.status()[0].protocol == "2026-07-28"
    assert await definitions.get(key) == listing


async def test_a_server_that_starts_is_listed_at_once_as_it_was_known_and_a_call_waits_for_it(
    fleet_of: MakeFleet, definitions: MemoryDefinitions, journal: Journal
) -> None:
    await known(fleet_of, definitions, journal.spec())
    async with fleet_of(journal.spec(), definitions=definitions) as fleet:
        assert await fleet.settled(60)
        (status,) = fleet.status()
        assert (status.state, status.known, status.available) == ("starting", True, True)
        assert PID in fleet.catalog()
        assert await fleet.call(PID, {})
        assert state(fleet) == "ready"


async def test_a_known_server_that_nobody_calls_starts_a_moment_after_the_gateway(
    fleet_of: MakeFleet, definitions: MemoryDefinitions, journal: Journal
) -> None:
    await known(fleet_of, definitions, journal.spec())
    async with fleet_of(journal.spec(), definitions=definitions) as fleet:
        assert await fleet.settled(60)
        assert len(journal.starts) == 1, "only the run that made it known"
        await until(lambda: state(fleet) == "ready")
        assert len(journal.starts) == 2


async def test_where_some_servers_are_enough_nobody_waits_for_the_others(fleet_of: MakeFleet, journal: Journal) -> None:
    mute = python("mute", "import time; time.sleep(60)")
    async with fleet_of(journal.spec(), mute) as fleet:
        assert await fleet.settled(20, some=True)
        assert PID in fleet.catalog()
        assert not await fleet.settled(0)


class Broken:
    async def get(self, key: str) -> Listing | None:
        raise ConfigError("The file is broken.")

    async def put(self, key: str, listing: Listing) -> None:
        raise OSError("No space left on device")


async def test_a_store_that_is_broken_is_logged_and_passed_over(
    lazy_fleet: MakeFleet, journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        async with lazy_fleet(journal.spec(), definitions=Broken()) as fleet:
            assert await fleet.call(PID, {})
    assert "cannot be read" in caplog.text
    assert "cannot be stored" in caplog.text


async def test_what_is_kept_is_no_listing_and_the_server_is_started(
    fleet_of: MakeFleet, lazy_fleet: MakeFleet, definitions: MemoryDefinitions, journal: Journal
) -> None:
    await known(fleet_of, definitions, journal.spec())
    key = key_of(journal.spec())
    await definitions.put(key, Listing(introduction={}, pages=({"tools": 7},), protocol="2025-11-25"))
    async with lazy_fleet(journal.spec()) as fleet:
        await fleet.settled(60)
        assert state(fleet) == "ready"


@pytest.mark.requirement("M30")
async def test_no_secret_of_the_configuration_is_kept(fleet_of: MakeFleet, journal: Journal, tmp_path: Path) -> None:
    file = tmp_path / "definitions.sqlite"
    spec = journal.spec(env={"API_KEY": "${THE_KEY}"})
    store = SqliteDefinitions(file)
    async with fleet_of(spec, definitions=store, environment={"THE_KEY": "s3cr3t-key"}) as fleet:
        await fleet.settled(60)
        await until(lambda: file.exists() and b"Plain" in _written(tmp_path))
    store.close()
    assert b"s3cr3t" not in _written(tmp_path)


def _written(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("definitions.sqlite*")))
