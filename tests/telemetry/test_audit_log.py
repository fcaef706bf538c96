from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence

import anyio.lowlevel
import pytest

from failing import Failing
from pegboard.audit_entries import AuditEntry
from pegboard.errors import StoreError
from pegboard.stores import MemoryAudit
from pegboard.telemetry import audit_log
from pegboard.telemetry.audit_log import AuditLog, AuditUnavailable
from pegboard.testing import FakeClock


def entry(number: int) -> AuditEntry:
    return AuditEntry(at=float(number), event="call", door="mcp", tool=f"tool_{number}")


async def kept(log: MemoryAudit) -> list[dict[str, object]]:
    return [json.loads(line) async for line in log.read()]


async def test_all_logs_get_every_entry_in_order(clock: FakeClock) -> None:
    first, second = MemoryAudit(), MemoryAudit()
    log = AuditLog([first, second], clock=clock)

    for each in range(2_500):
        log.put(entry(each))
    await log.close()

    for store in (first, second):
        assert [line["tool"] for line in await kept(store)] == [f"tool_{each}" for each in range(2_500)]


async def test_without_a_log_nothing_is_kept(clock: FakeClock) -> None:
    log = AuditLog(clock=clock, required=True)

    log.put(entry(1))
    log.check()
    await log.close()

    assert not log.is_on


async def test_a_log_that_fails_gets_its_entries_when_it_works_again(
    clock: FakeClock, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_log, "RETRY_SECONDS", 0.01)
    store, other = MemoryAudit(), MemoryAudit()
    failing = Failing(store)
    failing.down = True
    log = AuditLog([failing, other], clock=clock)

    log.put(entry(1))
    await _until_asked(failing, 3)
    log.put(entry(2))
    failing.down = False
    await log.close()

    assert [line["tool"] for line in await kept(store)] == ["tool_1", "tool_2"]
    assert len(await kept(other)) == 2
    assert [record.message[:34] for record in caplog.records] == [
        "The audit log cannot be written, a",
        "The audit log is written again.",
    ]


async def test_lines_that_do_not_fit_are_counted_in_the_log(
    clock: FakeClock, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_log, "MOST_WAITING", 5)
    monkeypatch.setattr(audit_log, "RETRY_SECONDS", 0.01)
    store = MemoryAudit()
    failing = Failing(store)
    failing.down = True
    log = AuditLog([failing], clock=clock)

    for each in range(8):
        log.put(entry(each))
    await _until_asked(failing, 1)
    failing.down = False
    await log.close()

    lines = await kept(store)
    assert [line.get("tool") for line in lines] == [*(f"tool_{each}" for each in range(5)), None]
    assert (lines[-1]["event"], lines[-1]["lost"]) == ("lost", 3)


async def test_a_required_log_that_fails_refuses_calls_until_it_works(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_log, "RETRY_SECONDS", 0.01)
    failing = Failing(MemoryAudit())
    failing.down = True
    log = AuditLog([failing], clock=clock, required=True)

    log.check()
    log.put(entry(1))
    await _until_asked(failing, 2)
    with pytest.raises(AuditUnavailable, match="Calls are refused while the audit log cannot be written"):
        log.check()
    failing.down = False
    await log.close()
    log.check()


async def test_a_log_that_never_works_does_not_hold_up_the_end(
    clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    failing = Failing(MemoryAudit())
    failing.down = True
    log = AuditLog([failing], clock=clock)

    log.put(entry(1))
    await log.close()

    assert caplog.records[-1].message == "1 lines of the audit log could not be written."
    assert caplog.records[-1].levelno == logging.WARNING


def test_arguments_are_kept_only_if_that_is_configured(clock: FakeClock) -> None:
    assert AuditLog(clock=clock).digested({"q": "secret"})[1] == ""
    assert AuditLog(clock=clock, values=True).digested({"q": "secret"})[1] == '{"q":"secret"}'
    assert len(AuditLog(clock=clock, values=True).digested({"q": "x" * 50_000})[1]) == 20_001


async def _until_asked(failing: Failing, times: int) -> None:
    while len(failing.asked) < times:
        await anyio.lowlevel.checkpoint()


async def test_a_batch_that_failed_comes_again_as_it_was(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log, "RETRY_SECONDS", 0.01)
    batches = list[list[str]]()

    class Unsure(MemoryAudit):
        async def append(self, entries: Sequence[AuditEntry]) -> None:
            batches.append([each.tool for each in entries])
            if len(batches) < 3:
                log.put(entry(1 + len(batches)))
                raise StoreError("The store hung up.", remedy="Look at it.")
            await super().append(entries)
            if len(batches) == 4:
                done.set()

    done = asyncio.Event()
    log = AuditLog([Unsure()], clock=clock)
    log.put(entry(1))
    await done.wait()
    await log.close()

    assert batches == [["tool_1"]] * 3 + [["tool_2", "tool_3"]]
