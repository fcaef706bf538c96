"""`pegboard audit-log`."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import Result

from pegboard.audit_entries import AuditEntry, Link
from pegboard.spend_limits import nano_usd
from pegboard.stores.audit_chain import shortened
from pegboard.stores.audit_file import ACTIVE, ENDS, AuditFile

Run = Callable[..., Result]


def entries() -> list[AuditEntry]:
    """Of the last day, a minute ago, half a minute ago and now."""
    now = time.time()
    call = AuditEntry(at=now, event="call", door="mcp", outcome="ok")
    return [
        replace(call, at=now - 90_000, caller="ann", server="files", tool="read"),
        replace(
            call,
            at=now - 60,
            caller="bob",
            tenant="acme",
            server="search",
            tool="deep_search",
            price=nano_usd("0.05"),
        ),
        replace(call, at=now - 30, caller="ann", tool="drop", outcome="refused", reason="tool_not_available"),
        AuditEntry(
            at=now,
            event="request",
            door="llm",
            caller="team",
            server="openai",
            model="m",
            outcome="ok",
            called=("read",),
        ),
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "audit"
    asyncio.run(AuditFile(made).append(entries()))
    return made


@pytest.fixture
def config(tmp_path: Path, folder: Path) -> Path:
    path = tmp_path / "pegboard.toml"
    path.write_text('[audit_log]\nto = ["file"]\nfolder = "audit"\n')
    return path


def numbers(run: Run, config: Path, *options: str) -> list[int]:
    done = run("audit-log", "--config", config, "--json", *options)
    assert done.exit_code == 0, done.output
    return [json.loads(line)["number"] for line in done.stdout.splitlines()]


def test_lines_are_found_by_caller_tool_server_outcome_and_time(run: Run, config: Path) -> None:
    assert numbers(run, config) == [1, 2, 3, 4]
    assert numbers(run, config, "--caller", "ann") == [1, 3]
    assert numbers(run, config, "--tenant", "acme") == [2]
    assert numbers(run, config, "--tool", "read") == [1, 4]
    assert numbers(run, config, "--tool", "d*") == [2, 3]
    assert numbers(run, config, "--server", "search") == [2]
    assert numbers(run, config, "--outcome", "refused") == [3]
    assert numbers(run, config, "--since", "1d") == [2, 3, 4]
    assert numbers(run, config, "--since", "2h", "--until", "2100-01-01", "--limit", "2") == [3, 4]


def test_a_person_reads_a_table(run: Run, config: Path) -> None:
    shown = run("audit-log", "--config", config, "--since", "1h").stdout

    assert "acme/bob" in shown
    assert "deep_search" in shown
    assert "0.05" in shown
    assert run("audit-log", "--config", config, "--caller", "nobody").stdout == "No line fits.\n"


def test_a_whole_log_is_verified_and_its_end_can_be_expected_later(run: Run, config: Path, folder: Path) -> None:
    said = json.loads(run("audit-log", "--config", config, "--verify", "--json").stdout)
    asyncio.run(AuditFile(folder).append(entries()[:1]))
    later = run("audit-log", "--config", config, "--verify", "--expect", said["end"])

    assert (said["whole"], said["lines"], said["findings"]) == (True, 4, [])
    assert later.exit_code == 0
    assert "5 lines: none was changed." in later.stdout


@pytest.mark.requirement("signing-in.audit-chain")
def test_a_changed_or_removed_line_fails_the_verification(run: Run, config: Path, folder: Path) -> None:
    active = folder / ACTIVE
    whole = active.read_bytes()
    active.write_bytes(whole.replace(b'"caller":"bob"', b'"caller":"eve"'))
    changed = run("audit-log", "--config", config, "--verify")
    active.write_bytes(b"".join(whole.splitlines(keepends=True)[:2]))
    removed = run("audit-log", "--config", config, "--verify")

    assert (changed.exit_code, removed.exit_code) == (1, 1)
    assert "changed: line 2 is not as written" in changed.stdout
    assert "missing: the lines 3 to 4 are missing at the end" in removed.stdout


def test_a_log_that_was_begun_anew_is_not_the_expected_one(run: Run, config: Path, folder: Path) -> None:
    end = json.loads(run("audit-log", "--config", config, "--verify", "--json").stdout)["end"]
    for path in folder.iterdir():
        path.unlink()
    asyncio.run(AuditFile(folder).append([*entries()[2:], *entries()]))

    done = run("audit-log", "--config", config, "--verify", "--expect", end)

    assert done.exit_code == 1
    assert f"line {end} is not there" in done.stdout


def test_lines_that_retention_removes_meanwhile_are_not_missing(
    run: Run, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = AuditFile.read

    async def read(log: AuditFile) -> AsyncIterator[bytes]:
        kept = [line async for line in whole(log)]
        removed = Link(number=2, hash=json.loads(kept[1])["hash"])
        (log.folder / ENDS).write_text(shortened(await log.ends(), removed, b""))
        for line in kept[2:]:
            yield line

    monkeypatch.setattr(AuditFile, "read", read)
    done = run("audit-log", "--config", config, "--verify")

    assert done.exit_code == 0, done.stdout
    assert "2 lines: none was changed." in done.stdout


def test_a_cut_write_is_said_and_is_no_failure(run: Run, config: Path, folder: Path) -> None:
    with (folder / ACTIVE).open("ab") as file:
        file.write(b'{"number":5,"at":"20')

    done = run("audit-log", "--config", config, "--verify")

    assert done.exit_code == 0
    assert "torn: a process died while it wrote after line 4" in done.stdout


def test_a_log_of_another_key_is_not_whole(
    run: Run, config: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.write_text(config.read_text() + 'key_env = "AUDIT_KEY"\n')
    unset = run("audit-log", "--config", config, "--verify")
    monkeypatch.setenv("AUDIT_KEY", "a-key-of-the-operator")
    done = run("audit-log", "--config", config, "--verify")

    assert unset.exit_code == 2
    assert "The variable 'AUDIT_KEY' is not set." in unset.stderr
    assert done.exit_code == 1
    assert "the end of the chain was not written with this key" in done.stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--since", "soon"], "--since 'soon' is not a time."),
        (["--since", "99999999999w"], "--since '99999999999w' is not a time."),
        (["--since", "999999d"], "--since '999999d' is not a time."),
        (["--outcome", "fine"], "There is no outcome 'fine'."),
        (["--from", "store"], "The audit log is not written to 'store'."),
        (["--expect", "5"], "--expect '5' cannot be used."),
    ],
)
def test_what_cannot_be_asked_is_an_error_that_says_what_can(
    run: Run, config: Path, options: list[str], said: str
) -> None:
    done = run("audit-log", "--config", config, *options)

    assert done.exit_code == 2
    assert said in done.stderr


def test_without_a_log_the_command_says_how_to_turn_it_on(run: Run, tmp_path: Path) -> None:
    (tmp_path / "none.toml").write_text("k = 3\n")

    done = run("audit-log", "--config", tmp_path / "none.toml")

    assert done.exit_code == 2
    assert 'Add `[audit_log]` with `to = ["file"]`' in done.stderr
