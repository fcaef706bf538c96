"""When retention is applied, and that it is in nobody's way. `contract` has what it removes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pegboard.activity_entries import ActivityEntry
from pegboard.audit_entries import AuditEntry, Link, sealed
from pegboard.errors import StoreError
from pegboard.protocols import Listing
from pegboard.records import Key, Kind
from pegboard.settings.storage import RetentionSettings
from pegboard.stores import MemoryActivity, MemoryAudit, SqliteDefinitions
from pegboard.stores import retention as module
from pegboard.stores.audit_chain import removable
from pegboard.stores.retention import DAY, EVERY, FIRST, RetentionJob
from pegboard.testing import FakeClock

LISTING = Listing(introduction={}, pages=({"tools": []},), protocol="2025-11-25")


class Failing:
    """An archive that is asked to remove things, and fails when told to."""

    def __init__(self) -> None:
        self.asked: list[tuple[Kind, float | None]] = []
        self.broken = False

    async def remove(self, kind: Kind, *, keys: Sequence[Key] | None = None, before: float | None = None) -> int:
        if self.broken:
            raise StoreError("Redis is gone.", remedy="Start it.")
        self.asked.append((kind, before))
        return 0


async def no_definitions(before: float) -> int:
    return 0


def made(archive: Failing, clock: FakeClock) -> tuple[RetentionJob, list[tuple[float, float]]]:
    """With what its chance was asked for."""
    asked: list[tuple[float, float]] = []

    def middle(low: float, high: float) -> float:
        asked.append((low, high))
        return (low + high) / 2

    return RetentionJob(archive, no_definitions, RetentionSettings(), clock, uniform=middle), asked  # type: ignore[arg-type]


async def slept(retirement: RetentionJob, rounds: int, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """For how long it slept, until it had done so many rounds."""
    naps: list[float] = []

    async def nap(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) > rounds:
            raise asyncio.CancelledError

    monkeypatch.setattr(module.asyncio, "sleep", nap)
    with pytest.raises(asyncio.CancelledError):
        await retirement.run()
    return naps


async def test_it_is_applied_about_once_an_hour_at_times_of_each_process_own(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = Failing()
    retirement, chances = made(archive, clock)

    assert await slept(retirement, 3, monkeypatch) == [FIRST / 2, EVERY, EVERY, EVERY]
    assert chances[:2] == [(0, FIRST), (0.5, 1.5)]
    assert [kind for kind, _ in archive.asked] == ["session", "hold", "meter", "lesson", "habit", "embedding"] * 3


async def test_a_store_that_fails_is_said_once_until_it_works_again(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    archive = Failing()
    retirement, _ = made(archive, clock)

    for archive.broken in (True, False, True):
        await slept(retirement, 3, monkeypatch)

    said = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert said == ["Unused records could not be removed: Redis is gone. Start it."] * 2


async def test_statistics_and_pins_are_kept_unless_it_is_configured(clock: FakeClock) -> None:
    archive = Failing()
    await made(archive, clock)[0].once()

    assert {kind for kind, _ in archive.asked}.isdisjoint({"statistics", "pin"})


async def test_definitions_that_no_server_was_started_with_are_removed(clock: FakeClock, tmp_path: Path) -> None:
    store = SqliteDefinitions(tmp_path / "d.sqlite", clock=clock)
    retirement = RetentionJob(Failing(), store.forget_unused, RetentionSettings(definitions=30), clock)  # type: ignore[arg-type]
    for key in ("used", "unused"):
        await store.put(key, LISTING)
    clock.advance(20 * DAY)
    await store.get("used")
    clock.advance(20 * DAY)

    removed = await retirement.once()

    assert removed["definition"] == 1
    assert await store.get("used") == LISTING
    assert await store.get("unused") is None
    store.close()


class Damaged:
    """A log whose lines are no lines."""

    async def remove(self, before: float) -> int:
        raise ValueError("Expecting value")


async def test_a_log_that_fails_as_none_should_ends_no_retention(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    archive, days = Failing(), RetentionSettings(audit=30)
    logs: list[Any] = [Damaged()]
    retirement = RetentionJob(archive, no_definitions, days, clock, audit_logs=logs)  # type: ignore[arg-type]

    await slept(retirement, 2, monkeypatch)

    assert [kind for kind, _ in archive.asked].count("session") == 2
    assert [record.getMessage() for record in caplog.records] == ["Unused records could not be removed"] * 2


async def test_a_damaged_audit_log_keeps_nothing_else_from_being_removed(clock: FakeClock) -> None:
    activity, damaged, whole = MemoryActivity(), MemoryAudit(), MemoryAudit()
    for log in (damaged, whole):
        await log.append([AuditEntry(at=float(at), event="call", door="mcp") for at in range(3)])
    damaged._lines[0] = b"{"
    await activity.put([ActivityEntry(id="1", at=0.0, door="mcp", kind="search")])
    clock.advance(90 * DAY)
    job = RetentionJob(
        Failing(),  # type: ignore[arg-type]
        no_definitions,
        RetentionSettings(audit=30, activity=30),
        clock,
        audit_logs=[damaged, whole],
        activity=activity,
    )

    with pytest.raises(StoreError, match="The oldest line of the audit log cannot be read"):
        await job.once()

    assert await activity.get("1") is None
    assert [line async for line in whole.read()] == []
    assert len([line async for line in damaged.read()]) == 3


@pytest.mark.parametrize("line", [b"", b"[1]", b"{}", b'{"at":"1970-01-01T00:00:00.000Z","number":"x","hash":""}'])
def test_lines_are_removed_up_to_one_that_cannot_be_read(line: bytes) -> None:
    lines, last = sealed([AuditEntry(at=float(at), event="call", door="mcp") for at in range(3)], Link())

    assert removable([*lines, line], 9.0)[-1] == last
    assert removable([lines[0], line, *lines[1:]], 9.0) == removable(lines[:1], 9.0)
    with pytest.raises(StoreError):
        removable([line, *lines], 9.0)
