"""Servers with known tools start a few at a time; one that is called does not wait for its turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from journals import Journal
from pegboard.model import ToolId
from pegboard.stores import MemoryDefinitions
from pegboard.upstreams import Fleet, start_turns
from pegboard.upstreams.start_turns import StartTurns
from processes import until

MakeFleet = Callable[..., Fleet]


def events(number: int) -> list[asyncio.Event]:
    return [asyncio.Event() for _ in range(number)]


async def begun(*tasks: asyncio.Task[None]) -> None:
    for _ in range(len(tasks) + 5):
        await asyncio.sleep(0)


async def test_the_next_server_starts_once_one_before_it_has_settled() -> None:
    turns, wanted, settled = StartTurns(places=2), events(4), events(4)
    tasks = [asyncio.create_task(turns.take(*pair, 0)) for pair in zip(wanted, settled, strict=True)]
    await begun(*tasks)
    assert [each.is_set() for each in wanted] == [True, True, False, False]
    settled[1].set()
    await begun(*tasks)
    assert [each.is_set() for each in wanted] == [True, True, True, False]
    for each in settled:
        each.set()
    await asyncio.gather(*tasks)
    assert all(each.is_set() for each in wanted)


async def test_a_server_that_was_called_meanwhile_takes_no_turn() -> None:
    turns, wanted, settled = StartTurns(places=1), events(3), events(3)
    tasks = [asyncio.create_task(turns.take(*pair, 0)) for pair in zip(wanted, settled, strict=True)]
    wanted[1].set()
    settled[0].set()
    await begun(*tasks)
    assert tasks[1].done()
    assert wanted[2].is_set()
    settled[2].set()
    await asyncio.gather(*tasks)


async def test_a_server_that_hangs_gives_up_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_turns, "LONGEST_TURN", 0.01)
    turns, wanted, settled = StartTurns(places=1), events(2), events(2)
    settled[1].set()
    await asyncio.gather(*(turns.take(*pair, 0) for pair in zip(wanted, settled, strict=True)))
    assert wanted[1].is_set()


def test_there_are_as_many_places_as_half_of_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    for cores, places in ((None, 1), (1, 1), (2, 1), (8, 4)):
        monkeypatch.setattr(start_turns.os, "cpu_count", lambda cores=cores: cores)
        assert StartTurns()._places._value == places


async def test_a_call_starts_its_server_though_another_has_the_only_turn(
    fleet_of: MakeFleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start_turns.os, "cpu_count", lambda: 1)
    definitions = MemoryDefinitions()
    servers = [Journal(name, tmp_path) for name in ("first", "second", "third")]
    specs = [each.spec() for each in servers]
    async with fleet_of(*specs, definitions=definitions) as fleet:
        await fleet.settled(60)
    async with fleet_of(*specs, definitions=definitions) as fleet:
        places = fleet.options.start_turns._places
        await places.acquire()  # as a server that has not settled would
        assert await fleet.call(ToolId("third", "pid"), {})
        assert [len(each.starts) for each in servers] == [1, 1, 2]
        places.release()
        await until(lambda: all(each.state == "ready" for each in fleet.status()))
    assert [len(each.starts) for each in servers] == [2, 2, 2]
