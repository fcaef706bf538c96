from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pegboard.audit_entries import AuditEntry, ChainCheck, ChainEnds, ChainFinding, findings
from pegboard.errors import StoreError
from pegboard.stores.audit_file import ACTIVE, ENDS, AuditFile

DAY = 86_400.0


def entry(number: int, at: float = 1_000.0) -> AuditEntry:
    return AuditEntry(at=at, event="call", door="mcp", caller="ann", tool=f"tool_{number}", outcome="ok")


async def lines(folder: Path) -> list[bytes]:
    return [line async for line in AuditFile(folder).read()]


async def found(folder: Path) -> list[ChainFinding]:
    log = AuditFile(folder)
    return list(findings(await lines(folder), ChainEnds.of(await log.ends())))


async def test_processes_that_write_at_once_make_one_chain(tmp_path: Path) -> None:
    logs = [AuditFile(tmp_path) for _ in range(4)]

    await asyncio.gather(*(logs[each % 4].append([entry(each), entry(each)]) for each in range(24)))

    assert [json.loads(line)["number"] for line in await lines(tmp_path)] == [*range(1, 49)]
    assert await found(tmp_path) == []


async def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    await AuditFile(tmp_path / "audit").append([entry(1)])

    assert stat.S_IMODE((tmp_path / "audit").stat().st_mode) == 0o700
    assert {stat.S_IMODE((tmp_path / "audit" / name).stat().st_mode) for name in (ACTIVE, ENDS)} == {0o600}


async def test_a_file_that_is_large_or_a_day_old_is_renamed_and_the_chain_goes_on(tmp_path: Path) -> None:
    log = AuditFile(tmp_path, file_bytes=2_000)

    for each in range(20):
        await log.append([entry(each)])
    large = len(list(tmp_path.glob("audit-*.jsonl")))
    await log.append([entry(20, at=1_000.0 + 2 * DAY)])

    assert large >= 2
    assert len(list(tmp_path.glob("audit-*.jsonl"))) == large + 1
    assert [json.loads(line)["number"] for line in await lines(tmp_path)] == [*range(1, 22)]
    assert await found(tmp_path) == []


async def test_files_that_are_not_old_are_not_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = AuditFile(tmp_path)
    for day in range(3):
        await log.append([entry(day, at=1_000.0 + day * 2 * DAY)])
    monkeypatch.delattr("pegboard.stores.audit_file._tail")

    assert await log.remove(999.0) == 0


async def test_old_files_are_removed_and_a_removed_file_is_seen(tmp_path: Path) -> None:
    log = AuditFile(tmp_path)
    for day in range(6):
        await log.append([entry(day, at=1_000.0 + day * 2 * DAY)] * 3)

    assert await log.remove(1_000.0 + 5 * DAY) == 9
    assert len(await lines(tmp_path)) == 9
    assert await found(tmp_path) == []

    sorted(tmp_path.glob("audit-*.jsonl"))[0].unlink()
    assert [each.text for each in await found(tmp_path)] == ["the lines 10 to 12 are missing"]


@pytest.mark.requirement("signing-in.audit-chain")
async def test_a_changed_a_removed_and_a_cut_line_are_seen(tmp_path: Path) -> None:
    await AuditFile(tmp_path).append([entry(each) for each in range(5)])
    active = tmp_path / ACTIVE
    whole = active.read_bytes()

    active.write_bytes(whole.replace(b"tool_2", b"tool_9"))
    assert [each.text for each in await found(tmp_path)] == ["line 3 is not as written"]
    active.write_bytes(b"".join(line for line in whole.splitlines(keepends=True) if b"tool_2" not in line))
    assert [each.text for each in await found(tmp_path)] == ["the lines 3 to 3 are missing"]
    active.write_bytes(whole[:-40])
    assert {each.kind for each in await found(tmp_path)} == {"changed", "missing"}


async def test_what_was_removed_stays_visible_after_more_was_written(tmp_path: Path) -> None:
    log = AuditFile(tmp_path)
    await log.append([entry(each) for each in range(5)])
    active = tmp_path / ACTIVE
    active.write_bytes(b"".join(active.read_bytes().splitlines(keepends=True)[:3]))

    await log.append([entry(6)])

    assert [each.text for each in await found(tmp_path)] == ["the lines 4 to 5 are missing"]


@pytest.mark.parametrize("cut", [1, 30, 120])
async def test_a_write_that_was_cut_off_is_told_apart_and_the_chain_goes_on(tmp_path: Path, cut: int) -> None:
    log = AuditFile(tmp_path)
    await log.append([entry(1), entry(2)])
    noted = (tmp_path / ENDS).read_text()
    await log.append([entry(3), entry(4)])
    (tmp_path / ENDS).write_text(noted)
    active = tmp_path / ACTIVE
    active.write_bytes(active.read_bytes()[:-cut])

    first = [each.kind for each in await found(tmp_path)]
    await log.append([entry(5)])
    await log.append([entry(6)])

    assert first == ([] if cut == 1 else ["torn"])
    assert [each.kind for each in await found(tmp_path)] == first
    assert [json.loads(line)["tool"] for line in (await lines(tmp_path))[-2:]] == ["tool_5", "tool_6"]


WRITER = """
import asyncio, sys
from pathlib import Path
from pegboard.audit_entries import AuditEntry
from pegboard.stores.audit_file import AuditFile

async def write():
    log, number = AuditFile(Path(sys.argv[1]), file_bytes=20_000), 0
    while True:
        await log.append([AuditEntry(at=1.0, event="call", door="mcp", tool="t", values="v" * 3000)] * 9)
        number += 9
        print(number, flush=True)

asyncio.run(write())
"""


@pytest.mark.requirement("signing-in.audit-chain")
async def test_a_log_survives_kill_9_without_a_line_that_was_written_missing(tmp_path: Path) -> None:
    for _ in range(8):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path / "log")], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        done = [writer.stdout.readline() for _ in range(3)]  # so that it dies somewhere in a later write
        os.kill(writer.pid, signal.SIGKILL)
        rest = writer.stdout.read()
        writer.stdout.close()
        writer.wait()
        written = int((done[-1] + rest).split()[-1])
        kept = [json.loads(line) for line in await lines(tmp_path / "log") if line.endswith(b"}")]
        assert written <= sum(each.get("tool", "").startswith("t") for each in kept)

    assert [each for each in await found(tmp_path / "log") if not each.is_harmless] == []


async def test_a_folder_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StoreError, match=r"The audit log in '.*file/audit' cannot be changed: Not a directory"):
        await AuditFile(tmp_path / "file" / "audit").append([entry(1)])


async def test_a_log_of_a_folder_that_does_not_exist_is_empty(tmp_path: Path) -> None:
    assert await lines(tmp_path / "none") == []
    assert await AuditFile(tmp_path / "none").ends() == ""
    assert await AuditFile(tmp_path / "none").remove(5.0) == 0


@pytest.mark.parametrize("file_bytes", [100, 700, 100_000])
async def test_files_with_a_line_whose_clock_was_wrong_are_kept_as_long_as_others(
    tmp_path: Path, file_bytes: int
) -> None:
    log, now = AuditFile(tmp_path, file_bytes=file_bytes), 20_000 * DAY
    for number, at in enumerate([now - DAY, now - 5_000 * DAY, now, now + 2 * DAY]):
        await log.append([entry(number, at=at)])

    assert await log.remove(now - 365 * DAY) == 0
    assert len(await lines(tmp_path)) == 4


async def test_a_file_with_one_younger_line_between_older_ones_is_kept(tmp_path: Path) -> None:
    log, now = AuditFile(tmp_path), 20_000 * DAY
    await log.append([entry(1, at=now - 900 * DAY), entry(2, at=now), entry(3, at=now - 900 * DAY)])
    await log.append([entry(4, at=now)])

    assert await log.remove(now - 365 * DAY) == 0
    assert len(await lines(tmp_path)) == 4


@pytest.mark.parametrize("failing", ["write", "fsync", "replace"])
async def test_a_disk_that_was_full_in_the_middle_of_a_write_gets_each_entry_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    log, write = AuditFile(tmp_path), os.write
    await log.append([entry(1)])

    def full_disk(*given: Any) -> Any:
        if failing == "write" and len(given[1]) > 50:
            return write(given[0], given[1][:-50])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        if failing == "replace":
            patched.setattr("pegboard.operating_system.replace_file", full_disk)
        else:
            patched.setattr(os, failing, full_disk)
        for _ in range(3):
            with pytest.raises(StoreError, match="No space left on device"):
                await log.append([entry(2), entry(3)])
    await log.append([entry(2), entry(3)])

    assert [json.loads(line)["tool"] for line in await lines(tmp_path)] == ["tool_1", "tool_2", "tool_3"]
    assert await found(tmp_path) == []


async def test_a_log_that_is_renamed_while_it_is_read_comes_whole(tmp_path: Path) -> None:
    log = AuditFile(tmp_path, file_bytes=1_000)
    for each in range(12):
        await log.append([entry(each)])
    check, read = ChainCheck(ChainEnds.of(await log.ends())), list[int]()

    async for line in AuditFile(tmp_path).read():
        assert list(check.feed(line)) == []
        read.append(json.loads(line)["number"])
        if len(read) in (1, 12):
            for each in range(12):
                await log.append([entry(each)])

    assert list(check.end()) == []
    assert read == [*range(1, len(read) + 1)]
    assert len(read) >= 24


async def test_files_that_are_removed_while_a_log_is_read_hide_no_others(tmp_path: Path) -> None:
    log, read = AuditFile(tmp_path, file_bytes=400), list[int]()
    for each in range(20):
        await log.append([entry(each, at=1_000.0 + each)])

    async for line in AuditFile(tmp_path).read():
        read.append(json.loads(line)["number"])
        if len(read) == 1:
            assert await log.remove(1_010.0) > 4

    assert read == sorted(read)
    assert {*range(ChainEnds.of(await log.ends()).removed.number + 1, 21)} <= {*read}
