from __future__ import annotations

import json
import os
import shutil
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import json5
import pytest
from typer.testing import Result

from pegboard.apps.cli import atomic_files
from pegboard.apps.cli.adopt import BACKUP
from pegboard.apps.cli.configs import given_or_usual
from pegboard.apps.cli.doctor import configurations
from pegboard.settings import client_import, load_settings
from pegboard.settings.client_files import own_file
from processes import listening
from signers import SIGNED

Run = Callable[..., Result]
RunJson = Callable[..., Any]
Put = Callable[..., Path]

DESKTOP = ".config/Claude/claude_desktop_config.json"
CURSOR = ".cursor/mcp.json"
CODE = ".claude.json"
VS_CODE = ".config/Code/User/mcp.json"


@pytest.fixture
def project(machine: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, below the home folder."""
    folder = machine / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr("shutil.which", lambda _program: "/opt/bin/pegboard")
    return folder


@pytest.fixture
def put(machine: Path, project: Path, data: Path) -> Put:
    """Writes a client's file below the home folder: servers, a whole document, a text, or one of the fixtures."""

    def write(where: str, content: Any = None, *, fixture: str = "", **servers: Any) -> Path:
        path = machine / where
        path.parent.mkdir(parents=True, exist_ok=True)
        if fixture:
            shutil.copy(data / "client_configs" / fixture, path)
        elif isinstance(content, str | bytes):
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        else:
            path.write_text(json.dumps(content or {"mcpServers": servers}, indent=2))
        return path

    return write


@pytest.fixture
def everything(put: Put, machine: Path) -> list[Path]:
    """Every fixture where its client keeps it."""
    return [
        put("work/.mcp.json", fixture="claude_code.mcp.json"),
        put("work/.vscode/mcp.json", fixture="vscode_mcp.json"),
        put(CURSOR, fixture="cursor_mcp.json"),
        put(DESKTOP, fixture="claude_desktop.json"),
        put(CODE, {"numStartups": 5, "mcpServers": {"docs": {"type": "http", "url": "http://127.0.0.1:3001/mcp"}}}),
    ]


def toml(path: Path) -> Any:
    return tomllib.loads(path.read_text())["servers"]


def servers(path: Path, key: str = "mcpServers") -> Any:
    return json5.loads(path.read_text())[key]


def tree(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def entry(target: Path) -> dict[str, Any]:
    return {"command": "/opt/bin/pegboard", "args": ["mcp", "--config", str(target)]}


def test_without_write_everything_is_shown_and_nothing_is_changed(
    run: Run, run_json: RunJson, everything: list[Path], machine: Path, project: Path
) -> None:
    before = tree(machine)
    shown = run("init").stdout
    report = run_json("init")

    assert tree(machine) == before
    assert "[servers.tickets.env]" in shown
    assert f'"{project}/pegboard.toml"' in shown
    assert report["written"] is False
    assert [target["file"] for target in report["targets"]] == [str(project / "pegboard.toml"), str(own_file())]
    assert report["clients"][0]["entry"] == entry(project / "pegboard.toml")


def test_the_servers_move_and_the_clients_start_pegboard(
    run: Run, everything: list[Path], project: Path, machine: Path
) -> None:
    assert run("init", "--write").exit_code == 0

    assert set(toml(project / "pegboard.toml")) == {"search", "database"}
    assert set(toml(own_file())) == {"files", "tickets", "docs"}
    assert toml(own_file())["tickets"] == {
        "command": "tickets-mcp",
        "args": ["--token", "${TICKETS_TOKEN}"],
        "env": {"TICKETS_TOKEN": "${TICKETS_TOKEN}", "REGION": "${REGION:-eu}"},
    }
    assert servers(machine / DESKTOP) == {"pegboard": entry(own_file())}
    assert servers(project / ".mcp.json") == {"pegboard-project": entry(project / "pegboard.toml")}
    assert json.loads((machine / CODE).read_text())["numStartups"] == 5
    assert stat.S_IMODE(own_file().stat().st_mode) == 0o600


def test_vs_code_is_told_in_its_own_spelling_and_keeps_its_inputs_and_comments(
    run: Run, everything: list[Path], project: Path
) -> None:
    run("init", "--write")
    path = project / ".vscode" / "mcp.json"

    assert servers(path, "servers")["pegboard-project"] == {"type": "stdio"} | entry(project / "pegboard.toml")
    assert path.read_text().startswith('// Servers of this workspace\n{\n  "inputs": [{"type": "promptString"')


def test_what_cannot_move_stays_with_its_reason(run_json: RunJson, put: Put) -> None:
    path = put(
        CURSOR,
        asks={"command": "x", "env": {"T": "${input:token}"}},
        editor={"command": "x", "args": ["${workspaceFolder}"]},
        deep={"command": "x", "env": {"A": "${B:-${input:c}}"}},
        basename={"command": "x", "args": ["${workspaceFolderBasename}"]},
        old={"type": "sse", "url": "https://old.example/sse"},
        off={"command": "x", "disabled": True},
        neither={"note": "nothing"},
        text="npx x",
        signs={"url": "https://sign.example/mcp", "auth": {"CLIENT_ID": "c"}},
        wrapped={"command": "pegboard", "args": ["mcp", "--", "npx", "y"]},
        broken={"url": "http://[::1/mcp"},
        moves={"command": "y"},
    )
    report = run_json("init", "--write")
    reasons = {stays["server"]: stays["reason"] for stays in report["stays"]}

    assert set(servers(path)) == {"pegboard", *reasons}
    assert set(toml(own_file())) == {"moves"}
    for name, reason in {
        "asks": "${input:token}",
        "editor": "${workspaceFolder}",
        "deep": "${input:c}",
        "basename": "${workspaceFolderBasename}",
        "old": "OAuth",
        "off": "disabled",
        "neither": "command or a url",
        "text": "not an object",
        "signs": "OAuth",
        "wrapped": "Pegboard itself",
        "broken": "the url is malformed",
    }.items():
        assert reason in reasons[name]


@pytest.mark.requirement("B4")
@pytest.mark.parametrize(
    ("entry", "stays"),
    [
        ({"url": "https://mcp.notion.example/mcp"}, True),
        ({"serverUrl": "https://mcp.linear.example/mcp"}, True),
        ({"url": "https://mcp.sentry.example/mcp", "headers": {"X-Region": "eu"}}, True),
        ({"url": "https://api.example/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}, False),
        ({"url": "https://api.example/mcp", "headers": {"CONTEXT7_API_KEY": "k"}}, False),
        ({"url": "https://api.example/mcp?apiKey=k"}, False),
        ({"url": "http://localhost:3001/mcp"}, False),
        ({"type": "sse", "url": "http://localhost:3001/events"}, False),
        ({"url": "http://[::1]:3001/mcp"}, False),
        ({"url": "http://${HOST}/mcp"}, True),
    ],
)
def test_a_server_that_its_client_may_sign_in_to_stays_with_the_client(
    run: Run, run_json: RunJson, put: Put, entry: dict[str, Any], stays: bool
) -> None:
    path = put(CODE, remote=entry, other={"command": "o"})
    before = path.read_bytes()
    report = run_json("init", "--write")

    assert ("remote" in servers(path)) == stays
    assert ("remote" in toml(own_file())) == (not stays)
    assert stays or toml(own_file())["remote"].get("type") == entry.get("type"), "sse stays sse"
    assert ["OAuth" in each["reason"] for each in report["stays"]] == [True] * stays
    run("init", "--undo")
    assert path.read_bytes() == before


@pytest.mark.requirement("B4")
def test_a_remote_server_that_was_put_on_the_board_by_hand_moves_and_comes_back(run: Run, put: Put) -> None:
    path = put(CODE, remote={"url": "https://open.example/mcp"})
    before = path.read_bytes()
    own_file().parent.mkdir(parents=True)
    own_file().write_text('[servers.open]\nurl = "https://open.example/mcp"\n')
    run("init", "--write")

    assert servers(path) == {"pegboard": entry(own_file())}
    run("init", "--undo")
    assert path.read_bytes() == before


@pytest.mark.requirement("B4")
def test_a_remote_server_that_stayed_and_was_deleted_since_stays_deleted(run: Run, put: Put) -> None:
    path = put(CODE, remote={"url": "https://open.example/mcp"}, other={"command": "o"})
    run("init", "--write")
    path.write_text(json.dumps({"mcpServers": {"pegboard": entry(own_file())}}))
    run("init", "--undo")

    assert servers(path) == {"other": {"command": "o"}}


@pytest.mark.requirement("B4")
def test_what_an_earlier_version_took_away_comes_back_though_its_board_is_gone(run: Run, put: Put) -> None:
    path = put(CODE, pegboard=entry(own_file()))
    backup = put(f"{CODE}{BACKUP}", remote={"url": "https://open.example/mcp"})
    before = backup.read_bytes()
    run("init", "--undo")

    assert path.read_bytes() == before


def test_the_same_server_is_imported_once_and_the_same_name_for_another_gets_its_clients(
    run_json: RunJson, put: Put
) -> None:
    github = {"command": "github-mcp", "env": {"TOKEN": "1"}}
    put(CODE, github=github | {"env": {"TOKEN": "2"}}, hub=github)
    put(CURSOR, github=github)
    put(DESKTOP, github=github | {"type": "stdio"})
    report = run_json("init", "--write")
    names = {each["client"]: [moved["as"] for moved in each["moved"]] for each in report["clients"]}

    assert names == {"claude-code": ["github", "hub"], "cursor": ["hub"], "claude-desktop": ["hub"]}
    assert {name: each["env"]["TOKEN"] for name, each in toml(own_file()).items()} == {"github": "2", "hub": "1"}


def test_a_name_that_is_taken_gets_the_clients_name_behind_it(run: Run, put: Put) -> None:
    put(CODE, github={"command": "one"})
    put(CURSOR, github={"command": "two"})
    put(DESKTOP, github={"command": "three"})
    run("init", "--write")

    commands = {name: each["command"] for name, each in toml(own_file()).items()}
    assert commands == {"github": "one", "github-cursor": "two", "github-claude-desktop": "three"}


def test_paths_of_a_project_are_written_whole(run: Run, put: Put, project: Path) -> None:
    put(
        "work/.mcp.json",
        a={"command": "./run.sh", "args": ["${workspaceFolder}/x", "rel"], "envFile": "my.env"},
        b={"command": "b", "cwd": "sub"},
        c={"command": "${HOME}/c", "cwd": "${workspaceFolder}"},
    )
    run("init", "--write")
    found = toml(project / "pegboard.toml")

    assert found["a"] == {
        "command": f"{project}/run.sh",
        "args": [f"{project}/x", "rel"],
        "cwd": str(project),
        "env_file": f"{project}/my.env",
    }
    assert found["b"]["cwd"] == f"{project}/sub"
    assert (found["c"]["command"], found["c"]["cwd"]) == ("${HOME}/c", str(project))


@pytest.mark.requirement("M30")
def test_no_secret_is_shown(run: Run, put: Put) -> None:
    put(
        CURSOR,
        a={"command": "x", "args": ["--api-key", "s3cret", "--token=s3cret"], "env": {"KEY": "s3cret"}},
        b={"url": "https://me:s3cret@host/mcp?key=s3cret", "headers": {"Authorization": "Bearer s3cret"}},
        c={"command": "x", "env": {"KEY": ["s3cret"]}},
        d={"command": "x", "env": {"KEY": "${s3cret", "MORE": "${input:s3}, s3cret}"}},
        e={"command": "npx", "args": ["mcp-remote", "https://host/mcp", "--header", "Authorization: Bearer s3cret"]},
        f={"command": "docker", "args": ["run", "-e", "GITHUB_PAT=s3cret", "--header=X-Mine: s3cret", "image"]},
    )
    for words in (["init"], ["init", "--json"], ["init", "--write"]):
        result = run(*words)
        assert result.exit_code == 0
        assert "s3cret" not in result.output
    assert own_file().read_text().count("s3cret") == 9, "d stays, for its input"


def test_a_second_time_changes_nothing(run: Run, run_json: RunJson, everything: list[Path], machine: Path) -> None:
    run("init", "--write")
    before = tree(machine)
    report = run_json("init", "--write")

    assert tree(machine) == before
    assert report["clients"] == []
    assert "Nothing is left to move" in run("init").stdout


def test_undo_after_write_leaves_every_client_byte_for_byte_as_it_was(
    run: Run, run_json: RunJson, everything: list[Path], put: Put, machine: Path
) -> None:
    put(VS_CODE, b'\xef\xbb\xbf{\r\n\t"servers": {"x": {"command": "y"}}, // a note\r\n}\r\n').chmod(0o640)
    before = tree(machine)
    run("init", "--write")
    report = run_json("init", "--undo")

    after = tree(machine)
    assert {path: after.get(path) for path in before} == before
    assert not [path for path in after if BACKUP in path.name]
    assert all(each["as_before"] for each in report["undone"])
    assert stat.S_IMODE((machine / VS_CODE).stat().st_mode) == 0o640
    assert "There is nothing to undo" in run("init", "--undo").stdout


def test_undo_keeps_what_was_edited_since(run: Run, run_json: RunJson, put: Put) -> None:
    path = put(CODE, {"theme": "dark", "mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}})
    run("init", "--write")
    document = json.loads(path.read_text())
    document["theme"] = "light"
    document["mcpServers"] |= {"b": {"command": "another"}, "new": {"command": "n"}}
    path.write_text(json.dumps(document))
    (undone,) = run_json("init", "--undo")["undone"]

    assert json.loads(path.read_text()) == {
        "theme": "light",
        "mcpServers": {"a": {"command": "a"}, "b": {"command": "another"}, "new": {"command": "n"}},
    }
    assert (undone["as_before"], undone["put_back"], undone["superseded"]) == (False, ["a"], ["b"])
    assert json.loads(Path(undone["backups"][0]).read_text())["theme"] == "dark"


def test_an_entry_that_was_given_options_since_is_still_ours(run: Run, run_json: RunJson, put: Put) -> None:
    path = put(CURSOR, a={"command": "a"})
    run("init", "--write")
    entry = servers(path)["pegboard"]
    entry["args"] += ["--log-level", "debug"]
    path.write_text(json.dumps({"mcpServers": {"pegboard": entry, "later": {"command": "l"}}}))
    run("init", "--write")
    assert servers(path) == {"pegboard": entry}

    (undone,) = run_json("init", "--undo")["undone"]
    assert undone["put_back"] == ["a", "later"]
    assert servers(path) == {"a": {"command": "a"}, "later": {"command": "l"}}


@pytest.mark.parametrize(
    "words", [["--", "npx", "big"], ["big"], ["--help"], ["--toolset", "few"], ["--log-level"], ["--verbose", "--"]]
)
def test_an_entry_that_starts_other_servers_than_its_files_is_not_ours(run: Run, put: Put, words: list[str]) -> None:
    big = {"command": "pegboard", "args": ["mcp", "--config", str(own_file()), *words]}
    path = put(CURSOR, big=big, a={"command": "a"})
    run("init", "--write")

    assert servers(path) == {"big": big, "pegboard": entry(own_file())}


@pytest.mark.parametrize(
    "words", [["--profile=keyword", "--verbose"], ["--exposure", "eager", "--no-attach", "--log-format=json"]]
)
def test_an_entry_whose_options_leave_its_servers_as_they_are_is_ours(run: Run, put: Put, words: list[str]) -> None:
    own = {"command": "pegboard", "args": ["mcp", "--config", str(own_file()), *words]}
    path = put(CURSOR, own=own, a={"command": "a"})
    run("init", "--write")

    assert servers(path) == {"own": own}


@pytest.mark.parametrize("content", ["{", b"\xff\xfe", '{"mcpServers": []}'])
@pytest.mark.parametrize("broken", ["claude_desktop_config.json", "claude_desktop_config.json.before-pegboard"])
def test_undo_restores_the_others_where_one_file_cannot_be_read_and_names_it(
    run: Run, run_json: RunJson, put: Put, content: str | bytes, broken: str
) -> None:
    put(DESKTOP, a={"command": "a"})
    other = put(CURSOR, b={"command": "b"})
    run("init", "--write")
    path = put(DESKTOP.replace("claude_desktop_config.json", broken), content)
    report = run_json("init", "--undo", code=1)

    assert servers(other) == {"b": {"command": "b"}}
    assert [each["client"] for each in report["undone"]] == ["cursor"]
    (failure,) = report["failed"]
    assert str(path).removesuffix(BACKUP) in failure
    assert failure in run("init", "--undo").stdout


def test_undo_restores_the_others_where_an_older_backup_cannot_be_read_and_names_it(
    run: Run, run_json: RunJson, put: Put
) -> None:
    other = put(DESKTOP, b={"command": "b"})
    path = put(CURSOR, a={"command": "a"})
    run("init", "--write")
    put(CURSOR, c={"command": "c"})
    run("init", "--write")
    older = path.with_name(f"mcp.json{BACKUP}")
    older.unlink()
    older.mkdir()
    edited = put(CURSOR, {"theme": "light", "mcpServers": servers(path)}).read_text()
    report = run_json("init", "--undo", code=1)

    assert servers(other) == {"b": {"command": "b"}}
    assert [str(older) in failure for failure in report["failed"]] == [True]
    assert path.read_text() == edited


def test_undo_keeps_an_entry_of_pegboard_that_was_there_before_init(run: Run, run_json: RunJson, put: Put) -> None:
    own = {"command": "pegboard", "args": ["mcp", "--config", str(own_file())]}
    path = put(CURSOR, own=own, a={"command": "a"})
    run("init", "--write")
    assert servers(path) == {"own": own}
    path.write_text(json.dumps({"theme": "light", "mcpServers": {"own": own}}))

    assert [each["put_back"] for each in run_json("init", "--undo")["undone"]] == [["a"]]
    assert servers(path) == {"own": own, "a": {"command": "a"}}


def test_what_was_undone_is_not_undone_again(run: Run, run_json: RunJson, put: Put) -> None:
    """Pegboard's entry was there before `init` and stays, and the user deletes a server that came back."""
    own = {"command": "pegboard", "args": ["mcp", "--config", str(own_file())]}
    path = put(CURSOR, own=own, a={"command": "a"})
    run("init", "--write")
    path.write_text(json.dumps({"theme": "light", "mcpServers": {"own": own}}))
    run("init", "--undo")
    path.write_text(json.dumps({"mcpServers": {"own": own}}))

    assert run("init", "--undo").stdout == "There is nothing to undo.\n"
    assert servers(path) == {"own": own}


def test_backups_of_every_undo_are_kept(run: Run, run_json: RunJson, put: Put) -> None:
    path = put(CURSOR, a={"command": "a"})
    path.chmod(0o640)
    kept = []
    for theme in ("light", "dark"):
        run("init", "--write")
        path.write_text(json.dumps({"theme": theme, "mcpServers": servers(path)}))
        (undone,) = run_json("init", "--undo")["undone"]
        kept += [Path(each) for each in undone["backups"]]

    assert [each.name for each in kept] == ["mcp.json.undone-pegboard", "mcp.json.undone-pegboard-2"]
    assert [json.loads(each.read_text()).get("theme") for each in kept] == [None, "light"]
    assert {stat.S_IMODE(each.stat().st_mode) for each in kept} == {0o640}
    assert [each for each in path.parent.iterdir() if BACKUP in each.name] == []


def test_backups_are_on_the_disk_before_a_clients_file_is_replaced(
    run: Run, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(CURSOR, a={"command": "a"})
    sync, place = os.fsync, Path.replace
    synced: set[int] = set()
    missing: list[set[int]] = []

    def recorded(descriptor: int) -> None:
        sync(descriptor)
        synced.add(os.fstat(descriptor).st_ino)

    def placed(self: Path, target: Path) -> Path:
        if target == path:
            missing.append({each.stat().st_ino for each in path.parent.glob("mcp.json.*-pegboard")} - synced)
        return place(self, target)

    monkeypatch.setattr(atomic_files.os, "fsync", recorded)
    monkeypatch.setattr(Path, "replace", placed)
    run("init", "--write")
    put(CURSOR, {"theme": "light", "mcpServers": servers(path)})
    run("init", "--undo")

    assert missing == [set(), set()]


def test_servers_of_several_moves_come_back_and_no_backup_is_overwritten(run: Run, put: Put) -> None:
    path = put(CURSOR, a={"command": "a"})
    run("init", "--write")
    path.write_text(json.dumps({"mcpServers": servers(path) | {"later": {"command": "l"}}}))
    run("init", "--write")
    assert set(servers(path)) == {"pegboard"}
    assert servers(path.with_name("mcp.json.before-pegboard")) == {"a": {"command": "a"}}
    assert "later" in servers(path.with_name("mcp.json.before-pegboard-2"))

    run("init", "--undo")
    assert servers(path) == {"a": {"command": "a"}, "later": {"command": "l"}}


def test_what_was_deleted_since_stays_deleted(run: Run, put: Put) -> None:
    path = put(CURSOR, a={"command": "a"}, off={"command": "o", "disabled": True})
    run("init", "--write")
    path.write_text(json.dumps({"mcpServers": {"pegboard": servers(path)["pegboard"]}}))
    run("init", "--undo")

    assert servers(path) == {"a": {"command": "a"}}


def test_a_client_without_our_entry_is_left_alone_by_undo(run: Run, run_json: RunJson, put: Put) -> None:
    path = put(CURSOR, a={"command": "a"})
    run("init", "--write")
    path.write_text('{"mcpServers": {"mine": {"command": "m"}}}')
    report = run_json("init", "--undo")

    assert report["undone"] == []
    assert "mcp.json.before-pegboard" in report["notes"][0]
    assert servers(path) == {"mine": {"command": "m"}}


def test_a_pegboard_toml_that_exists_is_extended_and_all_else_in_it_stays(run: Run, put: Put) -> None:
    text = '# mine\nprofile = "keyword"  # by words\n\n[servers.a]\ncommand = "a"'
    own_file().parent.mkdir(parents=True)
    own_file().write_text(text)
    put(CURSOR, a={"command": "other"}, same={"command": "a", "args": []})
    run("init", "--write")

    assert own_file().read_text().startswith(text)
    assert toml(own_file()) == {"a": {"command": "a"}, "a-cursor": {"command": "other"}}


def test_a_pegboard_toml_with_a_bom_is_read_and_extended_and_keeps_it(run: Run, run_json: RunJson, put: Put) -> None:
    text = b'\xef\xbb\xbf# mine\r\n[servers.a]\r\ncommand = "a"\r\n'
    own_file().parent.mkdir(parents=True)
    own_file().write_bytes(text)
    path = put(CURSOR, a={"command": "a"}, b={"command": "b"})
    before = path.read_bytes()
    assert run("init", "--write").exit_code == 0

    assert own_file().read_bytes().startswith(text)
    assert own_file().read_bytes().count(b"\xef\xbb\xbf") == 1
    assert sorted(load_settings([own_file()]).servers) == ["a", "b"]
    assert run_json("init", "--undo")["undone"][0]["as_before"]
    assert path.read_bytes() == before


def test_a_server_that_is_disabled_in_pegboard_toml_stays_with_its_client(run_json: RunJson, put: Put) -> None:
    text = '[servers.a]\ncommand = "a"\ndisabled = true\n[servers.b]\ncommand = "b"\ndisabled = true\n'
    own_file().parent.mkdir(parents=True)
    own_file().write_text(text + '[servers.also-b]\ncommand = "b"\n')
    path = put(CURSOR, a={"command": "a"}, b={"command": "b"})
    report = run_json("init", "--write")

    assert [(each["server"], each["reason"]) for each in report["stays"]] == [("a", "pegboard.toml has it, disabled.")]
    assert servers(path) == {"pegboard": entry(own_file()), "a": {"command": "a"}}
    assert [each["as"] for each in report["clients"][0]["moved"]] == ["also-b"]


@pytest.mark.parametrize("text", ["k = ", 'servers = {a = {command = "a"}}', "[servers.a]\n"])
def test_a_pegboard_toml_that_cannot_be_extended_is_an_error_before_anything_changes(
    run: Run, put: Put, machine: Path, text: str
) -> None:
    put(CURSOR, b={"command": "b"})
    own_file().parent.mkdir(parents=True)
    own_file().write_text(text)
    before = tree(machine)
    result = run("init", "--write")

    assert result.exit_code == 2
    assert "pegboard.toml" in result.stderr
    assert tree(machine) == before


def test_servers_that_go_to_another_file_later_are_started_too(run: Run, put: Put, machine: Path) -> None:
    path = put(CURSOR, a={"command": "a"})
    run("init", "--write")
    path.write_text(json.dumps({"mcpServers": servers(path) | {"later": {"command": "l"}}}))
    run("init", "--write", "--to", machine / "more.toml")

    assert servers(path) == {"pegboard": entry(own_file()), "pegboard-2": entry(machine / "more.toml")}
    run("init", "--undo")
    assert servers(path) == {"a": {"command": "a"}, "later": {"command": "l"}}


def test_values_that_come_into_a_projects_folder_are_warned_of(run: Run, put: Put) -> None:
    put(CURSOR, a={"command": "a", "env": {"K": "v"}})
    assert "version control" not in run("init").stdout
    put("work/.mcp.json", b={"command": "b", "env": {"K": "v"}})
    assert "pegboard.toml and the backups contain values of env or headers" in run("init").stdout


def test_one_client_into_a_file_of_its_own(run: Run, run_json: RunJson, everything: list[Path], machine: Path) -> None:
    put_in = machine / "new" / "desk.toml"
    run("init", "--client", "claude-desktop", "--client", "claude-code", "--to", "~/new/desk.toml", "--write")

    assert set(toml(put_in)) == {"files", "tickets", "docs", "search"}
    assert "notes" in servers(machine / CURSOR)
    assert not own_file().exists()
    run("init", "--undo", "--client", "claude-desktop")
    assert "files" in servers(machine / DESKTOP)
    assert list(servers(machine / CODE)) == ["pegboard"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--client", "emacs"], "claude-code, claude-desktop, cline, codex"),
        (["--undo", "--write"], "--undo"),
        (["--to", "servers.json"], ".toml"),
    ],
)
def test_wrong_use_says_what_is_right(run: Run, put: Put, words: list[str], problem: str) -> None:
    put(CURSOR, a={"command": "a"})
    result = run("init", *words)

    assert result.exit_code == 2
    assert problem in result.stderr


def test_a_machine_without_clients_is_told_so(run: Run, project: Path) -> None:
    result = run("init")

    assert result.exit_code == 2
    assert "No MCP client with servers" in result.stderr


@pytest.mark.parametrize("content", ["{", "[]", b"\xff\xfe", '{"mcpServers": []}'])
def test_a_file_that_cannot_be_read_is_left_out_and_named(run_json: RunJson, put: Put, content: str | bytes) -> None:
    broken = put(DESKTOP, content)
    put(CURSOR, a={"command": "a"})
    report = run_json("init", "--write")

    assert [client["client"] for client in report["clients"]] == ["cursor"]
    assert str(broken) in report["notes"][0]
    assert broken.read_bytes() == (content.encode() if isinstance(content, str) else content)


def test_claude_codes_servers_for_one_project_stay_and_are_told_of(run_json: RunJson, put: Put) -> None:
    projects = {"/src/shop": {"mcpServers": {"x": {"command": "x"}}}, "/src/empty": {"mcpServers": {}}}
    path = put(CODE, {"mcpServers": {"a": {"command": "a"}}, "projects": projects})
    report = run_json("init", "--write")

    assert report["notes"] == [f"Stays in {path}: 1 servers that are only for the project /src/shop."]
    assert json.loads(path.read_text())["projects"] == projects


@pytest.mark.parametrize("words", [["--write"], ["--undo"]])
@pytest.mark.parametrize("failing", ["staging", "placing"])
def test_where_one_file_cannot_be_written_none_is(
    run: Run, everything: list[Path], machine: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], failing: str
) -> None:
    """A folder that cannot be written shows when files are staged, a file that cannot be replaced only later."""
    if words == ["--undo"]:
        run("init", "--write")
    before = tree(machine)
    stage, place = atomic_files.tempfile.mkstemp, Path.replace

    def refuse(path: object) -> None:
        if "Claude" in str(path):
            raise PermissionError(13, "Permission denied", str(path))

    def no_stage(*args: Any, **options: Any) -> Any:
        refuse(options["dir"])
        return stage(*args, **options)

    def no_place(self: Path, target: Path) -> Any:
        refuse(target)
        return place(self, target)

    if failing == "staging":
        monkeypatch.setattr(atomic_files.tempfile, "mkstemp", no_stage)
    else:
        monkeypatch.setattr(Path, "replace", no_place)
    result = run("init", *words)

    assert result.exit_code == 2
    assert "Nothing was changed." in result.stderr
    assert tree(machine) == before


def test_what_another_program_writes_meanwhile_is_not_overwritten(
    run: Run, put: Put, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(CODE, a={"command": "a"})
    commit = atomic_files.FileChanges.commit

    def late(self: atomic_files.FileChanges) -> None:
        path.write_text('{"mcpServers": {}, "late": true}')
        commit(self)

    monkeypatch.setattr(atomic_files.FileChanges, "commit", late)
    result = run("init", "--write")

    assert result.exit_code == 2
    assert "Another program has just changed" in result.stderr
    assert path.read_text() == '{"mcpServers": {}, "late": true}'
    assert not own_file().exists()


def test_a_link_stays_a_link(run: Run, put: Put, machine: Path) -> None:
    real = put("dotfiles/cursor.json", a={"command": "a"})
    (machine / ".cursor").mkdir()
    (machine / CURSOR).symlink_to(real)
    before = real.read_bytes()
    run("init", "--write")

    assert (machine / CURSOR).is_symlink()
    assert list(servers(real)) == ["pegboard"]
    run("init", "--undo")
    assert (machine / CURSOR).is_symlink()
    assert real.read_bytes() == before


def test_of_two_links_to_one_file_one_is_left_out_and_the_servers_move(
    run: Run, run_json: RunJson, put: Put, machine: Path
) -> None:
    path = put(CURSOR, a={"command": "a"})
    before = path.read_bytes()
    (machine / DESKTOP).parent.mkdir(parents=True)
    (machine / DESKTOP).symlink_to(path)

    made = run_json("init", "--write")

    (changed,) = made["clients"]
    (note,) = made["notes"]
    assert "is the same file as" in note
    assert CURSOR in note
    assert DESKTOP in note
    assert changed["moved"] == [{"server": "a", "as": "a", "not_carried_over": []}]
    assert servers(path) == {"pegboard": entry(own_file())}
    assert (machine / DESKTOP).is_symlink()
    assert run("init", "--undo").exit_code == 0
    assert path.read_bytes() == before
    assert (machine / DESKTOP).is_symlink()


def test_an_entry_named_pegboard_that_is_another_server_is_moved_like_any(run: Run, put: Put) -> None:
    path = put(CURSOR, pegboard={"command": "pegs"}, stays={"command": "x", "disabled": True})
    run("init", "--write")

    assert servers(path)["pegboard"] == entry(own_file())
    assert toml(own_file()) == {"pegboard": {"command": "pegs"}}


def test_afterwards_the_other_commands_find_the_servers(run: Run, put: Put) -> None:
    put(CURSOR, a={"command": "a"})
    put("work/.mcp.json", b={"command": "b"})
    run("init", "--write")
    configured = given_or_usual([])

    assert set(configured.settings.servers) == {"a", "b"}
    assert configured.notes == tuple(
        f"Left out: server {name!r} is Pegboard itself." for name in ("pegboard", "pegboard-project")
    )
    assert {check.status for check in configurations(())[0]} == {"ok"}


def test_servers_that_a_projects_pegboard_toml_had_before_are_still_asked_for(run: Run, put: Put) -> None:
    put(CURSOR, a={"command": "a"})
    put("work/.mcp.json", b={"command": "b"})
    put("work/pegboard.toml", '[servers.theirs]\ncommand = "theirs"\n')
    run("init", "--write")

    assert set(given_or_usual([]).settings.servers) == {"a"}


@pytest.mark.requirement("B3")
@pytest.mark.parametrize(
    ("users", "projects", "place"),
    [
        (CODE, "work/.mcp.json", "mcpServers"),
        (CURSOR, "work/.cursor/mcp.json", "mcpServers"),
        (VS_CODE, "work/.vscode/mcp.json", "servers"),
    ],
)
def test_a_users_and_a_projects_entry_do_not_hide_each_other(
    run: Run, put: Put, machine: Path, project: Path, users: str, projects: str, place: str
) -> None:
    files = [put(users, {place: {"mine": {"command": "m"}}}), put(projects, {place: {"ours": {"command": "o"}}})]
    before = [path.read_bytes() for path in files]
    assert run("init", "--write").exit_code == 0

    started = [
        each["args"][-1]
        for each in {name: entry for path in files for name, entry in servers(path, place).items()}.values()
    ]
    assert started == [str(own_file()), str(project / "pegboard.toml")], "whichever wins, both are started"
    assert run("init", "--undo").exit_code == 0
    assert [path.read_bytes() for path in files] == before


@pytest.mark.requirement("B3")
def test_a_board_that_both_files_start_has_one_name_and_is_started_once(run: Run, put: Put, machine: Path) -> None:
    files = [put(CODE, mine={"command": "m"}), put("work/.mcp.json", ours={"command": "o"})]
    before = [path.read_bytes() for path in files]
    run("init", "--write", "--to", machine / "all.toml")

    assert [servers(path) for path in files] == [{"pegboard": entry(machine / "all.toml")}] * 2
    run("init", "--undo")
    assert [path.read_bytes() for path in files] == before


@pytest.mark.requirement("B3")
def test_entries_that_hide_each_other_already_are_told_of(run_json: RunJson, put: Put, project: Path) -> None:
    put(CODE, pegboard=entry(own_file()))
    put("work/.mcp.json", pegboard=entry(project / "pegboard.toml"), new={"command": "n"})

    (note,) = run_json("init")["notes"]
    assert ".claude.json" in note
    assert ".mcp.json" in note
    assert "'pegboard'" in note


@pytest.mark.parametrize("which", [None, "/opt/bin/pegboard"])
def test_a_program_that_is_in_no_folder_of_programs_is_started_through_its_python(
    run_json: RunJson, put: Put, monkeypatch: pytest.MonkeyPatch, which: str | None
) -> None:
    monkeypatch.setattr("shutil.which", lambda _program: which)
    put(CURSOR, a={"command": "a"})
    made = run_json("init")["clients"][0]["entry"]

    assert (made["command"] == "/opt/bin/pegboard") == (which is not None)
    assert made["args"][:2] == (["mcp", "--config"] if which else ["-m", "pegboard"])


@pytest.mark.requirement("B4")
def test_remote_servers_that_pegboard_can_sign_in_to_move_and_others_stay_with_the_reason(
    run: Run, run_json: RunJson, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_import, "may_sign_in", lambda made: "url" in made)  # the servers are on this machine
    with listening(SIGNED) as signed, listening(SIGNED, '{"open": true}') as free:
        path = put(
            CODE,
            notion={"url": f"{signed}/mcp", "oauth": {"clientId": "ours", "clientSecret": "canary", "callbackPort": 5}},
            cursor={"url": f"{signed}/mcp/", "auth": {"CLIENT_ID": "theirs", "scopes": ["read"]}},
            free={"url": f"{free}/mcp"},
            protected={"url": f"{free}/nowhere", "headers": {"X-Region": "eu"}},
            gone={"url": "http://127.0.0.1:9/mcp"},
        )
        before = path.read_bytes()
        shown = run("init").output
        report = run_json("init", "--write")

    assert "canary" not in shown + json.dumps(report)
    assert [each["server"] for each in report["stays"]] == ["gone"]
    assert "cannot be reached" in report["stays"][0]["reason"]
    assert "'notion' wants a sign-in: `pegboard login notion`." in report["notes"]
    moved = toml(own_file())
    assert moved["notion"]["oauth"] == {"client_id": "ours", "client_secret": "canary", "callback_port": 5}
    assert moved["cursor"]["oauth"] == {"client_id": "theirs", "scopes": ["read"]}
    assert "oauth" not in moved["free"]
    run("init", "--undo")
    assert path.read_bytes() == before
