"""`pegboard state` over a real store: shown, exported, imported, forgotten."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from typer.testing import Result

from pegboard.apps.cli import state_actions
from pegboard.clock import SYSTEM_CLOCK
from pegboard.habit_trial import Trial
from pegboard.habits import TRIAL, HabitKey, habits_of, within_encoder
from pegboard.model import Fingerprint, Outcome, Session, ToolId
from pegboard.settings import load_settings
from pegboard.spend_limits import Account, Limits, nano_usd
from pegboard.stores.sessions import session_key
from pegboard.stores.state import State, open_state
from pegboard.traffic import Seen
from pegboard_bench.ports import free_port
from services import POSTGRES, REDIS, answers, delete_keys, drop_schema, needs_postgres, needs_redis

Run = Callable[..., Result]
RunJson = Callable[..., Any]
OTHERS = [pytest.param(REDIS, marks=needs_redis), pytest.param(POSTGRES, marks=needs_postgres)]
LOG, NOW = ToolId("git", "log"), ToolId("time", "now")


def at_store(work: Callable[[State], Coroutine[Any, Any, Any]]) -> Any:
    """What the work returns, done with the store that the environment names."""

    async def run() -> Any:
        state = open_state(load_settings(), SYSTEM_CLOCK)
        try:
            return await work(state)
        finally:
            await state.close()

    return asyncio.run(run())


async def fill(state: State) -> None:
    """Alice had one session: two tools were called, a dollar was spent, one definition changed, two talks taught."""
    session = Session(id=session_key("5e55", "reading"), enabled=(LOG,), client={"clientInfo": {"name": "opencode"}})
    await state.sessions.save(session)
    await state.statistics.observe([Outcome(tool=tool, success=True, latency_ms=250) for tool in (LOG, NOW)])
    await state.lessons.add({"talks" * 9: Seen(requests=6, conversations=2, later=4, growth=2_010, changed=1)})
    key = within_encoder(habits_of("alice", "mcp"), "minilm")
    found = Trial(epoch=1, is_used=True, both=80, untaught=2, taught=10, neither=8)
    await state.habits.add({HabitKey(key, *LOG): np.ones(4, np.float32), HabitKey(key, TRIAL, found.row): found.sums})
    account = Account(session=session.id, key="alice")
    await state.spend.settle(await state.spend.reserve(account, nano_usd(1), Limits()), nano_usd(1))
    for letter in "ab":
        await state.pins.put({LOG: Fingerprint(letter * 64), NOW: Fingerprint("n" * 64)})


@pytest.fixture(autouse=True)
def toolset(machine: Path) -> None:
    (machine / "pegboard.toml").write_text("[toolsets.reading]\ntools = ['*']\n")


@pytest.fixture
def full() -> None:
    at_store(fill)


@pytest.fixture
def prefix() -> Iterator[str]:
    """Of a part of a server that is cleaned in the end."""
    name = f"test_{uuid4().hex}"
    yield name
    if answers(REDIS):
        asyncio.run(delete_keys(name))
    if answers(POSTGRES):
        asyncio.run(drop_schema(name))


def counts(run_json: RunJson) -> dict[str, int]:
    found = run_json("state", "show")["counts"]
    return {kind: count for kind, count in found.items() if count}


@pytest.mark.usefixtures("full")
def test_what_is_kept_is_shown_and_where(run_json: RunJson, run: Run) -> None:
    found = run_json("state", "show")

    assert found["backend"] == "sqlite"
    assert found["place"].endswith("pegboard/state.sqlite")
    assert found["counts"] == {
        "session": 1,
        "statistics": 2,
        "lesson": 1,
        "habit": 2,
        "meter": 3,
        "hold": 0,
        "pin": 2,
        "switch": 0,
        "embedding": 0,
    }
    assert found["spent_usd"] == {"today": 1.0, "in_all": 1.0}
    assert (found["pins_changed"], found["replicas"]) == (1, None)
    assert "statistics" not in found
    text = run("state", "show").stdout
    assert "2, 1 of them changed" in text
    assert "$1" in text


@pytest.mark.usefixtures("full")
def test_tables_are_shown_where_they_are_asked_for(run_json: RunJson, run: Run) -> None:
    found = run_json("state", "show", "--statistics", "--lessons", "--habits", "--pins", "--spend")

    assert [(each["name"], each["calls"]) for each in found["statistics"]] == [("log", 1), ("now", 1)]
    assert [(each["conversations"], each["growth"]) for each in found["lessons"]] == [(2, 2_010)]
    [habits] = found["habits"]
    assert (habits["key"].partition(":")[0], habits["tools"], habits["calls"], habits["epoch"]) == ("alice", 1, 100, 1)
    assert habits["difference"]["value"] == pytest.approx(0.08)
    assert [each["seen"][:1] for each in found["pins"]] == ["b", "n"]
    assert [(each["kind"], each["spent"]) for each in found["spend"]] == [
        ("day", 10**9),
        ("key", 10**9),
        ("session", 10**9),
    ]
    text = run("state", "show", "--statistics", "--lessons", "--habits", "--pins", "--spend").stdout
    assert all(
        said in text
        for said in ("git/log", "last called", "the same", "bbbbbbbbbbbb", "alice", "502.5", "25%", "+8.0%")
    )


@pytest.mark.usefixtures("full")
def test_an_export_takes_its_place_whole_and_is_its_owners_alone(run_json: RunJson, machine: Path) -> None:
    done = run_json("state", "export", machine / "state.jsonl")

    written = {"session": 1, "statistics": 2, "lesson": 1, "habit": 2, "meter": 3, "hold": 0, "pin": 2, "switch": 0}
    assert done["written"] == written
    assert stat.S_IMODE((machine / "state.jsonl").stat().st_mode) == 0o600
    assert len((machine / "state.jsonl").read_text().splitlines()) == 1 + 11 + 1
    assert {path.name for path in machine.iterdir()} == {"pegboard.toml", "state.jsonl"}


@pytest.mark.usefixtures("full")
def test_an_export_is_its_owners_alone_behind_a_link_and_over_a_readable_file_too(
    run_json: RunJson, machine: Path
) -> None:
    real = machine / "real.jsonl"
    real.write_text("")
    real.chmod(0o644)
    (machine / "state.jsonl").symlink_to(real)

    run_json("state", "export", machine / "state.jsonl")

    assert (machine / "state.jsonl").is_symlink()
    assert len(real.read_text().splitlines()) == 1 + 11 + 1
    assert stat.S_IMODE(real.stat().st_mode) == 0o600


@pytest.mark.usefixtures("full")
def test_an_export_that_fails_leaves_the_old_file_and_nothing_else(
    run: Run, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (machine / "state.jsonl").write_text("as it was")

    def full_disk(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    result = run("state", "export", machine / "state.jsonl")

    assert result.exit_code == 2
    assert "No space left on device" in result.stderr
    assert (machine / "state.jsonl").read_text() == "as it was"
    assert {path.name for path in machine.iterdir()} == {"pegboard.toml", "state.jsonl"}


@pytest.mark.usefixtures("full")
def test_without_a_file_the_lines_go_to_standard_output(run: Run) -> None:
    lines = [json.loads(line) for line in run("state", "export").stdout.splitlines()]

    assert (lines[0]["format"], lines[-1]) == ("pegboard state", {"records": 11})


@pytest.mark.requirement("design.state-moves")
@pytest.mark.usefixtures("full")
@pytest.mark.parametrize("url", OTHERS)
def test_state_moves_to_another_store_and_back_line_for_line(
    run_json: RunJson, machine: Path, url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = (machine / name for name in ("first", "second", "third"))
    run_json("state", "export", first)
    home = os.environ["XDG_STATE_HOME"]

    monkeypatch.setenv("PEGBOARD_STATE", json.dumps({"url": url, "prefix": prefix, "timeout": 30}))
    assert run_json("state", "import", first)["taken"] == 11
    run_json("state", "export", second)
    monkeypatch.delenv("PEGBOARD_STATE")
    monkeypatch.setenv("XDG_STATE_HOME", f"{home}/other")
    run_json("state", "import", second)
    run_json("state", "export", third)

    lines = [path.read_text().splitlines()[1:] for path in (first, second, third)]
    assert lines[0] == lines[1] == lines[2]


@pytest.mark.usefixtures("full")
def test_a_store_that_is_not_empty_is_left_alone_unless_it_is_to_be_merged(
    run: Run, run_json: RunJson, machine: Path
) -> None:
    run_json("state", "export", machine / "state.jsonl")

    result = run("state", "import", machine / "state.jsonl")

    assert result.exit_code == 2
    assert "is not empty: it has 11 records. Import with --merge" in result.stderr
    assert run_json("state", "import", machine / "state.jsonl", "--merge")["taken"] == 0


@pytest.mark.requirement("design.state-moves")
@pytest.mark.usefixtures("full")
@pytest.mark.parametrize("url", [None, *OTHERS])
def test_of_a_file_with_a_wrong_line_nothing_is_imported(
    run: Run, run_json: RunJson, machine: Path, url: str | None, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = machine / "state.jsonl"
    run_json("state", "export", file)
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines[:-2], lines[-2].replace("seen", "saw"), lines[-1]]))
    monkeypatch.setenv("XDG_STATE_HOME", str(machine / "new"))
    if url:
        monkeypatch.setenv("PEGBOARD_STATE", json.dumps({"url": url, "prefix": prefix, "timeout": 30}))

    result = run("state", "import", file)

    assert result.exit_code == 2
    assert f"line {len(lines) - 1}: seen: Field required" in result.stderr
    assert counts(run_json) == {}


@pytest.mark.usefixtures("full")
def test_embeddings_are_exported_where_they_are_asked_for(run_json: RunJson, machine: Path) -> None:
    import numpy as np

    at_store(lambda state: state.embeddings.put({"k": np.ones(3, np.float32)}))

    done = run_json("state", "export", machine / "all", "--embeddings")
    run_json("state", "forget", "--everything", "--yes")
    run_json("state", "import", machine / "all")

    assert done["written"]["embedding"] == 1
    assert at_store(lambda state: state.embeddings.get(["k"]))["k"].tolist() == [1, 1, 1]


@pytest.mark.usefixtures("full")
@pytest.mark.parametrize(
    ("words", "removed"),
    [
        (("--session", "5e55"), {"session": 1, "meter": 1}),
        (("--session", "other"), {}),
        (("--key", "alice"), {"session": 1, "habit": 2, "meter": 3}),
        (("--server", "git"), {"statistics": 1, "habit": 1, "pin": 1}),
        (("--tool", "time/now"), {"statistics": 1, "pin": 1}),
        (("--tool", "now"), {}),
        (("--lessons",), {"lesson": 1}),
        (("--habits",), {"habit": 2}),
        (("--expired",), {}),
        (("--everything", "--yes"), {"session": 1, "statistics": 2, "lesson": 1, "habit": 2, "meter": 3, "pin": 2}),
    ],
)
def test_what_is_forgotten_is_counted_and_gone(
    run_json: RunJson, words: tuple[str, ...], removed: dict[str, int]
) -> None:
    before = counts(run_json)

    assert run_json("state", "forget", *words)["removed"] == removed

    left = {kind: count - removed.get(kind, 0) for kind, count in before.items()}
    assert counts(run_json) == {kind: count for kind, count in left.items() if count}


@pytest.mark.parametrize(("words", "left"), [(("--server", "git"), 1), (("--tool", "git/prompts/log"), 2)])
def test_pins_of_each_users_own_connection_and_of_tools_with_ambiguous_names_go_too(
    run_json: RunJson, words: tuple[str, str], left: int
) -> None:
    """Their keys have the name of the user, or `tools/` before that of the tool."""

    async def pin(state: State) -> None:
        names = [("git@ann@a.example", "log"), ("git@", "tools/prompts/log"), ("git", "tools/prompts/log")]
        await state.pins.put(dict.fromkeys(map(ToolId._make, [*names, ("github", "log")]), Fingerprint("a" * 64)))

    at_store(pin)
    removed = run_json("state", "forget", *words)["removed"]

    assert counts(run_json) == {"pin": left}
    assert removed == {"pin": 4 - left}


@pytest.mark.usefixtures("full")
def test_what_was_removed_is_said_in_words(run: Run) -> None:
    assert (
        run("state", "forget", "--server", "git").stdout == "Removed: 1 tool with statistics, 1 pin, 1 row of habits.\n"
    )
    assert run("state", "forget", "--server", "git").stdout == "Removed: nothing.\n"


@pytest.mark.usefixtures("full")
def test_results_and_lines_of_the_audit_log_that_were_removed_are_said_in_words(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def forgotten(*_: object) -> dict[str, int]:
        return {"result": 1, "audit": 2_000, "novelty": 3}

    monkeypatch.setattr(state_actions, "_forgotten", forgotten)
    said = run("state", "forget", "--key", "alice")

    assert said.exit_code == 0, said.output
    assert said.stdout == "Removed: 1 result of a tool, 2,000 lines of the audit log, 3 novelty.\n"


@pytest.mark.usefixtures("full")
def test_everything_goes_only_where_somebody_agrees(
    run: Run, run_json: RunJson, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = counts(run_json)
    refused = run("state", "forget", "--everything", typed="y\n")
    monkeypatch.setattr("pegboard.apps.cli.state.on_terminal", lambda: True)
    declined = run("state", "forget", "--everything", typed="n\n")

    unanswered = run("state", "forget", "--everything")

    assert (refused.exit_code, declined.exit_code, unanswered.exit_code) == (2, 2, 130)
    assert "give --yes" in refused.stderr
    assert "11 records in" in declined.stderr
    assert counts(run_json) == before
    assert run("state", "forget", "--everything", typed="y\n").exit_code == 0
    assert counts(run_json) == {}


@pytest.mark.parametrize("words", [(), ("--session", "a", "--expired"), ("--key", "a", "--tool", "b")])
def test_one_thing_is_forgotten_at_a_time(run: Run, words: tuple[str, ...]) -> None:
    result = run("state", "forget", *words)

    assert result.exit_code == 2
    assert "give one of --session" in result.stderr


@pytest.mark.usefixtures("full")
@pytest.mark.parametrize("empty", ["", "  "])
@pytest.mark.parametrize("option", ["--session", "--key", "--server", "--tool"])
def test_an_empty_name_is_refused_and_nothing_is_forgotten(
    run: Run, run_json: RunJson, option: str, empty: str
) -> None:
    async def spent_by_nobody(state: State) -> None:
        await state.spend.settle(await state.spend.reserve(Account(session="s"), nano_usd(1), Limits()), nano_usd(1))

    at_store(spent_by_nobody)
    before = counts(run_json)

    result = run("state", "forget", option, empty)

    assert result.exit_code == 2
    assert f"{option} is empty" in result.stderr
    assert counts(run_json) == before


@pytest.mark.requirement("M30")
@pytest.mark.parametrize("words", [("show",), ("export",), ("import", "empty.jsonl"), ("forget", "--expired")])
def test_a_store_that_does_not_answer_is_said_without_its_password(
    run: Run, words: tuple[str, ...], machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (machine / "empty.jsonl").write_text('{"format": "pegboard state", "version": 1}\n{"records": 0}')
    port = free_port()
    monkeypatch.setenv("PEGBOARD_STATE", f"redis://me:s3cret@127.0.0.1:{port}/0")

    result = run("state", *words)

    assert result.exit_code == 1
    assert f"Redis at 127.0.0.1:{port}/0 cannot be used" in result.stderr
    assert "s3cret" not in result.output


def test_the_group_shows_its_help_and_has_examples(run: Run) -> None:
    result = run("state")

    assert result.exit_code == 0
    assert all(name in result.stdout for name in ("show", "export", "import", "forget", "Examples"))
