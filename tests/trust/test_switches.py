"""General switches and rejections: none lifts another."""

from __future__ import annotations

from pathlib import Path

import pytest

from pegboard.model import Fingerprint, ToolId
from pegboard.records import SwitchRecord
from pegboard.stores import SqliteArchive
from pegboard.stores.sqlite.database import STATE_MIGRATIONS, SqliteFile
from pegboard.testing import FakeClock
from pegboard.trust.switches import Switches

PAY = ToolId("bank", "transfer")
ONE, TWO, OTHER = (Fingerprint(letter * 64) for letter in "abc")


@pytest.fixture
def switches(tmp_path: Path, clock: FakeClock) -> Switches:
    return Switches(SqliteArchive(tmp_path / "s.sqlite", tmp_path / "c.sqlite", clock), clock, lambda: None)


def off(switches: Switches) -> set[Fingerprint]:
    return {each for each in (ONE, TWO, OTHER) if switches.is_off(PAY, lambda each=each: each)}  # type: ignore[misc]


async def test_a_rejection_survives_the_general_switch(switches: Switches) -> None:
    await switches.turn_off(PAY, who="ann", definition=ONE)
    await switches.turn_off(PAY, who="ben")
    assert off(switches) == {ONE, TWO, OTHER}

    await switches.turn_on(PAY)

    assert off(switches) == {ONE}


async def test_a_rejection_of_what_is_switched_off_holds_when_it_is_switched_on(switches: Switches) -> None:
    await switches.turn_off(PAY, who="ben")
    await switches.turn_off(PAY, who="ann", definition=ONE)

    await switches.turn_on(PAY)

    assert off(switches) == {ONE}


async def test_a_second_rejection_lifts_no_other(switches: Switches) -> None:
    await switches.turn_off(PAY, who="ann", definition=ONE)
    await switches.turn_off(PAY, who="ann", definition=TWO)
    assert off(switches) == {ONE, TWO}

    await switches.turn_on(PAY, ONE)

    assert off(switches) == {TWO}


async def test_who_switched_last_is_kept_even_within_one_tick_of_the_clock(switches: Switches) -> None:
    await switches.turn_off(PAY, who="ann")
    await switches.turn_off(PAY, who="ben")

    assert [each.who for each in switches.records.values()] == ["ben"]


async def test_switches_of_an_older_version_are_kept(tmp_path: Path, clock: FakeClock) -> None:
    path = tmp_path / "s.sqlite"
    before = next(at for at, step in enumerate(STATE_MIGRATIONS) if step.name == "rejections beside switches")
    old = SqliteFile(path, STATE_MIGRATIONS[:before], remedy="")
    for row in (("bank", "", "", "ann", 1.5), ("bank", "transfer", ONE, "ben", 2.5)):
        old.run_now(lambda file, row=row: file.execute("INSERT INTO switches VALUES (?, ?, ?, ?, ?)", row).close())  # type: ignore[misc]
    old.close()

    read = [each async for each in SqliteArchive(path, tmp_path / "c.sqlite", clock).read("switch")]

    assert read == [
        SwitchRecord(server="bank", name="", definition="", who="ann", at=1.5),
        SwitchRecord(server="bank", name="transfer", definition=ONE, who="ben", at=2.5),
    ]
