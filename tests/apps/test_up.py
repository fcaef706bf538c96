from __future__ import annotations

import configparser
import json
import os
import plistlib
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import httpx2
import pytest
import tomli_w
from typer.testing import Result

from pegboard.apps.cli import shared_process
from pegboard.apps.cli.service_files import ServiceDefinition, launch_agent, managers, systemd_unit, windows_task
from pegboard.errors import PegboardError
from pegboard.gateways.access_keys import hashed
from pegboard.gateways.mcp.attach.serve_discovery import running_folder, running_for
from pegboard.settings.client_files import own_file
from processes import alive, eventually

Run = Callable[..., Result]
RunJson = Callable[..., Any]

SYSTEMCTL = """#!{python}
# Stands for the user's systemd: it starts and stops what a unit says.
import json, os, pathlib, shlex, signal, subprocess, sys
home = pathlib.Path(os.environ["HOME"])
with (home / "calls").open("a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
unit = home / ".config/systemd/user" / sys.argv[-1]
pid = home / "pid"
def end():
    if pid.exists():
        os.kill(int(pid.read_text()), signal.SIGTERM)
        pid.unlink()
if "restart" in sys.argv:
    end()
    line = next(each for each in unit.read_text().splitlines() if each.startswith("ExecStart="))
    out = (home / "out").open("w")
    words = [word.replace("$$", "$").replace("%%", "%") for word in shlex.split(line.removeprefix("ExecStart="))]
    pid.write_text(str(subprocess.Popen(words, stdin=-3, stdout=out, stderr=out, start_new_session=True).pid))
elif "disable" in sys.argv:
    end()
"""
LAUNCHCTL = """#!{python}
# Stands for launchd: it refuses a service that is loaded, and for a moment one that is just ending.
import pathlib, sys
home = pathlib.Path({home!r})
loaded, ending = home / "loaded", home / "ending"
if sys.argv[1] == "bootout" and loaded.exists():
    loaded.replace(ending)
elif sys.argv[1] == "bootstrap" and not loaded.exists() and not ending.exists() and not (home / "refuses").exists():
    loaded.write_text(pathlib.Path(sys.argv[3]).read_text())
else:
    ending.unlink(missing_ok=True)
    sys.exit("Bootstrap failed: 5: Input/output error")
"""
ODD = ServiceDefinition(
    name="pegboard",
    command=("/opt/a b/pegboard", "serve", "--config", '/home/me/50% "of" $HOME\\x&<.toml'),
    path="/usr/bin:/home/me/my tools",
    env_file=Path("/home/me/.config/pegboard/up.env"),
    log=Path("/home/me/pegboard.log"),
)


@pytest.fixture
def board(machine: Path, scripted: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The user's own file with one server; what still serves it is stopped at the end."""
    monkeypatch.delenv("PEGBOARD_CACHE_DIR")
    monkeypatch.setattr(shared_process, "own_command", lambda: [sys.executable, "-m", "pegboard"])
    own_file().parent.mkdir(parents=True)
    own_file().write_text(tomli_w.dumps({"port": 0, "servers": {"scripted": scripted}}))
    yield own_file()
    shared_process.SharedProcess(files=(own_file(),)).down()


@pytest.fixture
def stand_in(machine: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Puts a program into the PATH."""
    programs = machine / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr("pegboard.operating_system.PLATFORM", "linux")

    def put(name: str, text: str) -> None:
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)

    return put


def healthz(url: str) -> Any:
    return httpx2.get(httpx2.URL(url).copy_with(path="/healthz"), trust_env=False).raise_for_status().json()


def healthy(url: str) -> bool:
    return bool(healthz(url)["status"] == "ok")


def as_of_another_version(pid: int) -> None:
    """What a running process has said of itself, as if the package had been upgraded since."""
    said = running_folder() / f"{pid}.json"
    said.write_text(json.dumps(json.loads(said.read_text()) | {"version": "0.0.0"}))


def test_one_process_is_started_found_by_the_others_and_stopped(run: Run, run_json: RunJson, board: Path) -> None:
    made = run_json("up", "--manager", "process")
    again = run_json("up", "--manager", "process")
    checks = {check["name"]: check for check in run_json("doctor", "--config", board, code=0)["checks"]}

    assert healthy(made["url"])
    assert made["url"] == again["url"] == running_for([board], running_folder()), "where `pegboard mcp` looks for it"
    assert (made["ran_already"], again["ran_already"]) == (False, True)
    assert made["url"] in checks["shared process"]["detail"]
    assert run_json("down") == {"stopped": ["process"], "still_runs": None}
    assert running_for([board], running_folder()) is None
    assert run_json("down") == {"stopped": [], "still_runs": None}


def test_a_process_that_wants_tokens_is_found_and_stopped_and_no_client_attaches_to_it(
    run: Run, run_json: RunJson, board: Path
) -> None:
    with board.open("a") as file:
        file.write('\n[access.ann]\nhash = "' + hashed("key") + '"\n')
    shown = run("up", "--manager", "process").output
    again = run_json("up", "--manager", "process")

    assert "It wants tokens of its callers" in shown
    assert "Clients use it" not in shown
    assert (again["ran_already"], again["wants_tokens"]) == (True, True)
    assert healthz(again["url"]) == {"status": "ok"}, "who has no token hears nothing else"
    assert running_for([board], running_folder()) is None, "where `pegboard mcp` looks for it"
    assert run_json("down") == {"stopped": ["process"], "still_runs": None}


@pytest.mark.parametrize("broken", [True, False], ids=["broken", "deleted"])
def test_a_process_is_stopped_although_its_configuration_cannot_be_read(
    run_json: RunJson, board: Path, broken: bool
) -> None:
    made = run_json("up", "--manager", "process")
    board.write_text("[servers") if broken else board.unlink()

    assert healthy(made["url"])
    assert run_json("down") == {"stopped": ["process"], "still_runs": None}


@pytest.mark.parametrize("differs", ["environment", "version"])
def test_a_process_of_another_environment_or_version_is_stopped(
    run_json: RunJson, board: Path, monkeypatch: pytest.MonkeyPatch, differs: str
) -> None:
    if differs == "environment":
        monkeypatch.setenv("PEGBOARD_K", "5")
    pid = healthz(run_json("up", "--manager", "process")["url"])["pid"]
    monkeypatch.delenv("PEGBOARD_K", raising=False)
    if differs == "version":
        as_of_another_version(pid)

    assert run_json("down") == {"stopped": ["process"], "still_runs": None}
    assert not alive(pid)


def test_a_process_that_is_started_anew_takes_the_place_of_the_earlier_one(
    run_json: RunJson, board: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEGBOARD_K", "5")
    earlier = healthz(run_json("up", "--manager", "process")["url"])["pid"]
    monkeypatch.delenv("PEGBOARD_K")
    made = run_json("up", "--manager", "process")

    assert (made["ran_already"], healthy(made["url"])) == (False, True)
    assert not alive(earlier)


def test_a_process_that_cannot_be_told_is_left_and_named_and_so_is_its_file(run_json: RunJson, board: Path) -> None:
    shared = shared_process.SharedProcess(files=(board,))
    number = shared.folder / "pegboard.pid"
    shared.folder.mkdir(parents=True)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        number.write_text(str(other.pid))
        error = run_json("down", code=1)

        assert f"The process {other.pid}" in error["message"]
        assert str(number) in error["remedy"]
        assert number.exists()
        assert alive(other.pid)
        other.kill()
    assert run_json("down") == {"stopped": [], "still_runs": None}
    assert not number.exists()


def test_a_service_of_systemd_is_written_started_and_removed(
    run: Run, run_json: RunJson, board: Path, machine: Path, stand_in: Callable[[str, str], None]
) -> None:
    stand_in("systemctl", SYSTEMCTL.format(python=sys.executable))
    unit = machine / ".config/systemd/user/pegboard.service"
    made = run_json("up")

    assert healthy(made["url"])
    assert (made["manager"], made["file"]) == ("systemd", str(unit))
    assert f'--config" "{board}"' in unit.read_text()
    run("down")
    assert not unit.exists()
    calls = [json.loads(line)[1] for line in (machine / "calls").read_text().splitlines()]
    assert calls == ["show-environment", *("daemon-reload", "enable", "restart"), *("disable", "daemon-reload")]


def test_a_service_of_systemd_that_runs_already_is_started_anew(
    run_json: RunJson, board: Path, stand_in: Callable[[str, str], None]
) -> None:
    stand_in("systemctl", SYSTEMCTL.format(python=sys.executable))
    earlier = healthz(run_json("up")["url"])["pid"]
    as_of_another_version(earlier)
    made = run_json("up")

    assert made["ran_already"] is False
    assert healthz(made["url"])["pid"] != earlier
    assert eventually(lambda: not alive(earlier))


def test_launchd_is_told_of_a_service_anew_and_one_that_works_stays_if_it_refuses(
    board: Path, machine: Path, stand_in: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in("launchctl", LAUNCHCTL.format(python=sys.executable, home=str(machine)))
    agent = machine / "Library/LaunchAgents/pegboard.plist"
    for port in (7001, 7002):
        shared_process.SharedProcess(files=(board,), port=port).up("launchd")
        assert str(port) in (machine / "loaded").read_text()
    worked = agent.read_text()
    monkeypatch.setattr(shared_process, "STOP_SECONDS", 0)
    (machine / "refuses").touch()

    with pytest.raises(PegboardError, match="Bootstrap failed"):
        shared_process.SharedProcess(files=(board,), port=7003).up("launchd")
    assert agent.read_text() == worked


def test_a_manager_that_refuses_leaves_nothing_and_its_words_are_shown(
    run: Run, board: Path, machine: Path, stand_in: Callable[[str, str], None]
) -> None:
    stand_in("systemctl", "#!/bin/sh\necho 'Failed to connect to bus' >&2\nexit 1\n")
    result = run("up", "--manager", "systemd")

    assert result.exit_code == 1
    assert "Failed to connect to bus" in result.stderr
    assert not list((machine / ".config/systemd/user").iterdir())
    assert shared_process.usual_manager() == "process", "and without a bus, none is the usual one"


def test_a_serve_that_cannot_start_is_told_with_the_end_of_its_log(run: Run, board: Path) -> None:
    board.write_text('port = 0\nhost = "203.0.113.7"\n[servers.s]\ncommand = "x"\n')
    result = run("up", "--manager", "process")

    assert result.exit_code == 1
    assert "did not get ready" in result.stderr
    assert "203.0.113.7" in result.stderr
    assert "serve --config" in result.stderr, "the command to try"


def test_settings_of_the_shell_that_a_service_would_not_see_are_refused(
    run: Run, board: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEGBOARD_PROFILE", "s3cret")
    result = run("up", "--manager", "systemd")

    assert result.exit_code == 2
    assert "PEGBOARD_PROFILE" in result.stderr
    assert "s3cret" not in result.output
    assert running_for([board], running_folder()) is None


def test_variables_that_the_service_will_not_have_are_named(
    run_json: RunJson, board: Path, scripted: dict[str, Any]
) -> None:
    servers = {"a": scripted | {"disabled": True, "env": {"T": "${TICKETS_TOKEN}", "U": "${REGION:-eu}"}}}
    board.write_text(tomli_w.dumps({"port": 0, "servers": servers}))
    from pegboard.apps.cli.up import _notes

    (note,) = _notes(shared_process.SharedProcess(files=(board,)), "systemd")
    assert "TICKETS_TOKEN" in note
    assert "REGION" not in note


@pytest.mark.parametrize("manager", ["systemd", "launchd", "task", "process"])
def test_printing_writes_and_starts_nothing(run: Run, board: Path, machine: Path, manager: str) -> None:
    before = sorted(machine.rglob("*"))
    result = run("up", "--print", "--manager", manager)

    assert result.exit_code == 0
    assert str(board) in result.stdout
    assert sorted(machine.rglob("*")) == before


@pytest.mark.parametrize("words", [["up"], ["up", "--manager", "cron"]])
def test_wrong_use_of_up_says_what_is_right(run: Run, board: Path, words: list[str]) -> None:
    if len(words) == 1:
        board.unlink()
    result = run(*words)

    assert result.exit_code == 2
    assert ("systemd, launchd, task, process" if len(words) > 1 else "pegboard init") in result.stderr


def test_a_unit_says_exactly_the_command_whatever_is_in_it() -> None:
    parser = configparser.RawConfigParser()
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(systemd_unit(ODD))
    words = [each.replace("$$", "$").replace("%%", "%") for each in shlex.split(parser["Service"]["ExecStart"])]

    assert tuple(words) == ODD.command
    assert shlex.split(parser["Service"]["Environment"]) == [f"PATH={ODD.path}"]
    assert parser["Service"]["EnvironmentFile"] == f"-{ODD.env_file}"


def test_an_agent_and_a_task_say_exactly_the_command_whatever_is_in_it() -> None:
    agent = plistlib.loads(launch_agent(ODD).encode())
    task = ElementTree.fromstring(windows_task(ODD).partition("?>")[2])  # noqa: S314
    space = {"t": "http://schemas.microsoft.com/windows/2004/02/mit/task"}
    made = [task.findtext(f".//t:{each}", namespaces=space) for each in ("Command", "Arguments")]

    assert tuple(agent["ProgramArguments"]) == ODD.command
    assert agent["EnvironmentVariables"] == {"PATH": ODD.path}
    assert made == [ODD.command[0], subprocess.list2cmdline(ODD.command[1:])]


def test_each_system_has_its_place_and_its_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    made = managers(ODD, Path("/home/me"), Path("/config"), 501)

    assert [str(each.file) for each in made.values()] == [
        "/home/me/.config/systemd/user/pegboard.service",
        "/home/me/Library/LaunchAgents/pegboard.plist",
        "/config/pegboard.xml",
    ]
    assert made["launchd"].start == (("launchctl", "bootstrap", "gui/501", str(made["launchd"].file)),)
    assert made["task"].start[0][-1] == str(made["task"].file)
