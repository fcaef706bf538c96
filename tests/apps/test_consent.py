"""Servers of a project's own files are started only after a yes: whoever wrote the project chose what they run."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from typer.testing import CliRunner

from pegboard.apps.cli import app, consent
from pegboard.apps.cli.configs import HARMLESS, SENDING, given_or_usual, own_files, own_files_agreed
from pegboard.errors import ConfigError
from pegboard.gateways.mcp.transport.config_reload import Source
from pegboard.settings import Settings
from pegboard.settings.client_files import own_file

ON_WHAT_IS_KEPT = [
    ["state", "show"],
    ["state", "forget", "--lessons"],
    ["pins"],
    ["pins", "approve", "*"],
    ["report"],
    ["keys", "list"],
    ["keys", "rotate", "alice"],
    ["audit-log"],
    ["shadow", "--forget"],
    ["whoami"],
    ["logout", "--all"],
    ["logs"],
    ["top"],
    ["ui"],
    ["registry", "list"],
    ["replay", "log.jsonl"],
    ["serve", "--port", "0"],
]
PRESET = 'toolsets = {some = {preset = {"theirs/tell" = {text = "${GITHUB_TOKEN}"}}}}'
FILES = [".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json", "pegboard.toml"]


@pytest.fixture
def project(machine: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = machine / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A terminal whose user gives these answers; the questions asked are the ones that are gone."""
    given: list[str] = []

    class Terminal:
        def isatty(self) -> bool:
            return True

    def confirm(_text: str, **_options: Any) -> bool:
        return given.pop(0) == "yes"

    monkeypatch.setattr(consent, "sys", type("sys", (), {"stdin": Terminal(), "stderr": Terminal()}))
    monkeypatch.setattr(consent.typer, "confirm", confirm)
    return given


def put(path: Path, **servers: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    key = "servers" if ".vscode" in path.parts else "mcpServers"
    path.write_text(tomli_w.dumps({"servers": servers}) if path.suffix == ".toml" else json.dumps({key: servers}))
    return path


@pytest.mark.parametrize("name", FILES)
def test_without_a_terminal_a_projects_file_is_left_out_with_how_to_name_it(
    project: Path, machine: Path, name: str
) -> None:
    path = put(project / name, theirs={"command": "theirs"})
    put(machine / ".cursor" / "mcp.json", mine={"command": "mine"})
    configured = given_or_usual([])

    assert set(configured.settings.servers) == {"mine"}
    assert configured.notes == (consent.refusal(path),)
    assert f"--config {path}" in consent.refusal(path)
    assert set(given_or_usual([path]).settings.servers) == {"theirs"}


def test_where_there_is_nothing_else_the_error_says_it_too(project: Path) -> None:
    put(project / ".mcp.json", theirs={"command": "theirs"})

    with pytest.raises(ConfigError, match=r"Left out: .*\.mcp\.json belongs to the current project"):
        given_or_usual([])


def test_on_a_terminal_it_is_asked_once_and_again_when_the_file_is_another(project: Path, answers: list[str]) -> None:
    path = put(project / ".mcp.json", theirs={"command": "theirs"})
    put(project / "pegboard.toml").write_text("k = 3")
    answers[:] = ["no", "yes"]

    assert "theirs" not in given_or_usual([]).settings.servers
    assert "theirs" in given_or_usual([]).settings.servers
    assert answers == []
    assert "theirs" in given_or_usual([]).settings.servers, "remembered"

    put(path, theirs={"command": "something-else"})
    answers[:] = ["no"]
    assert "theirs" not in given_or_usual([]).settings.servers


def test_the_question_says_what_would_be_started_and_shows_no_secret(
    project: Path, answers: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    put(
        project / ".mcp.json",
        theirs={"command": "rm", "args": ["-r", "--key", "s3cret"]},
        web={"url": "https://s3cret@host/"},
    )
    answers[:] = ["yes"]
    given_or_usual([])
    said = capsys.readouterr()

    assert said.out == ""
    assert "'theirs': 'rm -r --key ***'" in said.err
    assert "'web': 'https://***host/'" in said.err
    assert "s3cret" not in said.err


def test_a_file_that_starts_nothing_but_pegboard_needs_no_question(project: Path) -> None:
    put(
        project / ".mcp.json",
        pegboard={"command": "pegboard", "args": ["mcp", "--config", "/x/pegboard.toml"]},
        off={"command": "x", "disabled": True},
    )

    assert set(given_or_usual([]).settings.servers) == {"off"}


@pytest.mark.parametrize(
    "option",
    ["inherit_env = true", 'scan = "off"', 'pins = "allow"', 'sandbox = {kind = "none"}', 'state_dir = "/x"', PRESET],
)
def test_a_projects_file_without_servers_weakens_nothing_unasked(
    project: Path, machine: Path, answers: list[str], option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    put(machine / ".cursor" / "mcp.json", mine={"command": "mine"})
    path = project / "pegboard.toml"
    path.write_text(f"k = 3\n{option}\n")
    name = option.partition(" ")[0]
    answers[:] = ["no", "yes"]

    left_out = given_or_usual([])
    assert (left_out.settings.k, left_out.notes) == (None, (consent.refusal(path),))
    assert f"belongs to the current project and sets {name}." in capsys.readouterr().err
    assert given_or_usual([]).settings.k == 3
    assert answers == []


def test_every_option_is_harmless_or_asked_about() -> None:
    """A new one is asked about, until somebody has thought of what a project's author could do with it."""
    assert set(Settings.model_fields) >= HARMLESS
    assert not HARMLESS & (SENDING | {"access", "grants", "inherit_env", "pins", "rules", "sandbox", "scan", "scopes"})


def test_in_the_home_folder_the_users_own_file_is_no_projects(machine: Path) -> None:
    put(machine / ".cursor" / "mcp.json", mine={"command": "mine"})

    assert set(given_or_usual([]).settings.servers) == {"mine"}


def test_the_users_own_pegboard_toml_is_no_projects_in_its_folder_either(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(own_file(), mine={"command": "mine"})
    monkeypatch.chdir(path.parent)

    assert set(given_or_usual([]).settings.servers) == {"mine"}


def test_what_was_remembered_is_private_and_a_broken_memory_is_none(project: Path, answers: list[str]) -> None:
    put(project / ".mcp.json", theirs={"command": "theirs"})
    answers[:] = ["yes", "yes"]
    given_or_usual([])
    memory = consent.memory()
    assert stat.S_IMODE(memory.stat().st_mode) == 0o600
    assert list(json.loads(memory.read_text())) == [str(project / ".mcp.json")]

    memory.write_text("{")
    given_or_usual([])
    assert answers == []


@pytest.mark.parametrize("name", [".mcp.json", "pegboard.toml"])
@pytest.mark.parametrize("command", [["audit"], ["route", "x"], ["doctor"], ["scan"], ["lint"], ["summarize"]])
def test_no_command_starts_a_projects_servers_unasked(project: Path, command: list[str], name: str) -> None:
    mark = project / "started"
    put(project / name, theirs={"command": "touch", "args": [str(mark)]})
    result = CliRunner().invoke(app, [*command, "--json"])

    assert not mark.exists()
    assert "belongs to the current project" in result.output


@pytest.mark.parametrize("theirs", ['state_dir = "theirs"', 'state = "sqlite:///theirs/x.db"'], ids=["folder", "url"])
@pytest.mark.parametrize("command", ON_WHAT_IS_KEPT, ids=" ".join)
def test_no_command_takes_a_store_that_a_projects_file_names_unasked(
    project: Path, command: list[str], theirs: str
) -> None:
    (project / "log.jsonl").touch()
    (project / "pegboard.toml").write_text(theirs)
    result = CliRunner().invoke(app, [*command, "--json"])

    assert result.exit_code == 2
    assert "'pegboard.toml' belongs to the current project and sets" in result.output
    assert "`--config pegboard.toml` uses it" in result.output
    assert not (project / "theirs").exists()


def test_a_projects_store_is_taken_once_the_user_has_allowed_it_and_what_is_harmless_needs_no_question(
    project: Path, answers: list[str]
) -> None:
    path = project / "pegboard.toml"
    path.write_text('state_dir = "theirs"')
    answers[:] = ["no", "yes"]

    with pytest.raises(ConfigError, match="sets state_dir, which you have not allowed"):
        own_files_agreed()
    assert own_files_agreed() == own_files_agreed() == own_files()
    assert answers == []

    path.write_text('k = 3\nalways_available = ["*"]\n')
    assert own_files_agreed() == own_files()


def test_servers_of_a_projects_file_are_asked_about_where_they_would_start_or_the_answer_would_allow_them(
    project: Path, answers: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = put(project / "pegboard.toml", theirs={"command": "theirs"})
    assert own_files_agreed() == own_files()
    answers[:] = ["no", "no"]
    with pytest.raises(ConfigError, match="starts servers, which you have not allowed"):
        own_files_agreed(starts=True)

    path.write_text('state_dir = "theirs"\n' + path.read_text())
    capsys.readouterr()
    with pytest.raises(ConfigError, match="sets state_dir"):
        own_files_agreed()
    assert "'theirs': 'theirs'" in capsys.readouterr().err


def test_serve_starts_no_program_that_a_projects_file_names_unasked(project: Path) -> None:
    (project / "theirs.py").write_text("open('started', 'w').close()")
    put(project / "pegboard.toml", theirs={"command": sys.executable, "args": ["theirs.py"]})
    result = CliRunner().invoke(app, ["serve", "--port", "0"])

    assert result.exit_code == 2
    assert "belongs to the current project and starts servers, which you have not allowed" in result.output
    assert "`--config pegboard.toml` uses it" in result.output
    assert not (project / "started").exists()


def test_a_gateway_that_runs_does_not_take_what_has_come_into_an_allowed_file(
    project: Path, answers: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can be asked when it reads the file again."""
    path = put(project / "pegboard.toml", mine={"command": "mine"})
    sources = list[Source]()

    async def served(_settings: Settings, source: Source, **_: object) -> None:
        sources.append(source)

    monkeypatch.setattr("pegboard.gateways.serve.serve_http", served)
    answers[:] = ["yes"]
    assert CliRunner().invoke(app, ["serve"]).exit_code == 0
    [source] = sources
    assert set(source.load().servers) == {"mine"}

    put(path, mine={"command": "mine"}, theirs={"command": "theirs"})
    with pytest.raises(ConfigError, match="starts servers, which you have not allowed"):
        source.load()


def test_what_the_environment_sets_is_not_asked_about(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "pegboard.toml").write_text('state = "redis://theirs"\nstate_dir = "theirs"\n')
    monkeypatch.setenv("PEGBOARD_STATE", "redis://mine")
    with pytest.raises(ConfigError, match="sets state_dir, which"):
        own_files_agreed()

    monkeypatch.setenv("PEGBOARD_STATE_DIR", "mine")
    assert own_files_agreed() == own_files()


def test_an_answer_that_cannot_be_remembered_counts_once(
    project: Path, answers: list[str], machine: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (project / "pegboard.toml").write_text('state_dir = "theirs"\n')
    (machine / "a file").write_text("")
    monkeypatch.setattr(consent, "memory", lambda: machine / "a file" / "allowed.json")
    answers[:] = ["yes"]

    assert own_files_agreed() == own_files()
    assert "Your answer is not remembered" in caplog.text


def test_toolsets_of_a_projects_file_are_asked_about_where_they_have_presets(
    project: Path, machine: Path, answers: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    put(machine / ".cursor" / "mcp.json", mine={"command": "mine"})
    path = project / "pegboard.toml"
    path.write_text('k = 3\n[toolsets.some]\ntools = ["theirs/*"]\n')
    assert given_or_usual([]).settings.k == 3
    assert own_files_agreed(starts=True) == own_files()

    path.write_text(f"k = 3\n{PRESET}\n")
    answers[:] = ["no", "no"]
    assert given_or_usual([]).settings.k is None
    assert own_files_agreed() == own_files(), "nothing is called"
    with pytest.raises(ConfigError, match="sets toolsets"):
        own_files_agreed(starts=True)

    path.write_text(f'state_dir = "theirs"\n{PRESET}\n')
    answers[:] = ["no"]
    capsys.readouterr()
    with pytest.raises(ConfigError, match="sets state_dir, toolsets"):
        own_files_agreed()
    assert "sets state_dir, toolsets" in capsys.readouterr().err, "the answer is for all of the file"
