"""`pegboard init` on the configuration of every client, in every form in which users keep them."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import json5
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import Result

from client_samples import SAMPLES, Sample
from pegboard.apps.cli.adopt import BACKUP
from pegboard.apps.cli.configs import given_or_usual
from pegboard.apps.cli.init import _init, _undo
from pegboard.settings.client_files import Client, clients, own_file

Run = Callable[..., Result]
BY_CLIENT = {sample.client: sample for sample in SAMPLES}
FORMS: dict[str, Callable[[str], bytes]] = {
    "plain": str.encode,
    "crlf": lambda text: text.replace("\n", "\r\n").encode(),
    "bom": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "bom and crlf": lambda text: b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode(),
    "no end": lambda text: text.rstrip("\n").encode(),
}
HALF = {".yaml": "\n - ["}
"""What makes a text that was cut off unreadable, where it is not by itself."""
ARGS = {"search": [], "files": ["-y", "@modelcontextprotocol/server-filesystem", "/srv"]}


@pytest.fixture
def project(machine: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = machine / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr("shutil.which", lambda _program: "/opt/bin/pegboard")
    monkeypatch.setattr("pegboard.operating_system.PLATFORM", "linux")
    return folder


def put(machine: Path, sample: Sample, data: bytes) -> Path:
    path = machine / sample.file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def parsed(path: Path) -> Any:
    """By a parser that `init` does not use to edit."""
    text = path.read_bytes().decode("utf-8-sig")
    if path.suffix == ".toml":
        return tomllib.loads(text.replace("\r\n", "\n"))
    return yaml.safe_load(text) if path.suffix == ".yaml" else json5.loads(text)


def entries(document: Any, place: str) -> dict[str, Any]:
    found = document[place] or {}
    return {each["name"]: each for each in found} if isinstance(found, list) else found


def with_board(value: Any, board: Path) -> Any:
    return json.loads(json.dumps(value).replace("BOARD", str(board)))


def boards_servers() -> dict[str, Any]:
    return tomllib.loads(own_file().read_text()).get("servers", {}) if own_file().exists() else {}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("client", BY_CLIENT)
def test_the_servers_of_every_client_move_and_come_back_byte_for_byte(
    run: Run, machine: Path, project: Path, client: str, form: str
) -> None:
    sample = BY_CLIENT[client]
    path = put(machine, sample, FORMS[form](sample.text))
    path.chmod(0o640)
    before, document = path.read_bytes(), parsed(path)
    shown = run("init")
    assert shown.exit_code == 0, shown.output
    assert path.read_bytes() == before

    written = run("init", "--write")
    assert written.exit_code == 0, written.output
    after = parsed(path)
    others = {name: each for name, each in entries(document, sample.place).items() if name not in ARGS}
    assert entries(after, sample.place) == others | {"pegboard": with_board(sample.entry, own_file())}
    assert {key: each for key, each in after.items() if key != sample.place} == {
        key: each for key, each in document.items() if key != sample.place
    }
    text = path.read_bytes().decode()
    assert [word for word in sample.keeps if word not in text] == []
    assert text.count("\r\n") == (text.count("\n") if "crlf" in form else 0)
    assert text.startswith("\ufeff") == ("bom" in form)

    undone = run("init", "--undo")
    assert undone.exit_code == 0, undone.output
    assert path.read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o640
    assert not list(path.parent.glob(f"*{BACKUP}*"))


@pytest.mark.parametrize("client", BY_CLIENT)
def test_what_moves_is_the_same_server_whatever_the_client_calls_its_fields(
    run: Run, machine: Path, project: Path, client: str
) -> None:
    put(machine, BY_CLIENT[client], BY_CLIENT[client].text.encode())
    run("init", "--write")
    servers = boards_servers()

    assert set(servers) == {"files", "search"}
    assert (servers["files"]["command"], servers["files"]["args"]) == ("npx", ARGS["files"])
    if "url" in servers["search"]:
        assert servers["search"]["url"] == "http://127.0.0.1:7001/mcp"
        assert "${SEARCH_KEY}" in str(servers["search"]["headers"])
    else:
        assert servers["search"]["command"] == "search-mcp"
        assert servers["search"]["env"]["SEARCH_KEY"] in ("k", "${SEARCH_KEY}", "${env:SEARCH_KEY}")


ODD_VALUES = """{margin}    - on
{margin}    - 2026-01-01
{margin}    - 0755
{margin}    - 22:22
{margin}    - yes
{margin}  {env}:
{margin}    NO: off
{margin}    SINCE: 2026-01-01T10:00:00Z
{margin}    SIGN: =
{margin}    VERSION: 3.10
"""


@pytest.mark.parametrize(
    ("client", "before"),
    [
        (
            "goose",
            "extensions:\n  on:\n    type: stdio\n    cmd: go\n    args:\n"
            + ODD_VALUES.format(margin="  ", env="envs"),
        ),
        (
            "continue",
            "mcpServers:\n  - name: on\n    command: go\n    args:\n" + ODD_VALUES.format(margin="  ", env="env"),
        ),
    ],
)
def test_values_that_are_no_texts_in_yaml_1_1_move_and_come_back_as_they_are_written(
    run: Run, machine: Path, project: Path, client: str, before: str
) -> None:
    path = put(machine, BY_CLIENT[client], before.encode())
    run("init", "--write")

    assert boards_servers()["on"] == {
        "command": "go",
        "args": ["on", "2026-01-01", "0755", "22:22", "yes"],
        "env": {"NO": "off", "SINCE": "2026-01-01T10:00:00Z", "SIGN": "=", "VERSION": "3.10"},
    }
    path.write_text(path.read_text() + "# edited\n")
    run("init", "--undo")
    assert path.read_text() == before + "# edited\n"


@pytest.mark.parametrize("enabled", ["false", "no", "Off"])
def test_an_extension_that_is_switched_off_in_whatever_words_stays(
    run: Run, machine: Path, project: Path, enabled: str
) -> None:
    text = f"extensions:\n  a:\n    enabled: {enabled}\n    type: stdio\n    cmd: go\n"
    path = put(machine, BY_CLIENT["goose"], text.encode())
    result = run("init", "--write")

    assert "It is disabled." in result.output
    assert path.read_text() == text


@pytest.mark.parametrize("client", BY_CLIENT)
def test_without_a_board_the_servers_of_every_client_are_found(machine: Path, project: Path, client: str) -> None:
    put(machine, BY_CLIENT[client], BY_CLIENT[client].text.encode())

    assert {"files", "search"} <= set(given_or_usual([]).settings.servers)


@pytest.mark.parametrize("client", BY_CLIENT)
def test_a_half_written_file_is_left_alone_and_named(run: Run, machine: Path, project: Path, client: str) -> None:
    sample = BY_CLIENT[client]
    half = sample.text[: sample.text.index("/srv")] + HALF.get(Path(sample.file).suffix, "")
    path = put(machine, sample, half.encode())
    other = put(machine, BY_CLIENT["kiro" if client != "kiro" else "cursor"], BY_CLIENT["kiro"].text.encode())
    result = run("init", "--write")

    assert result.exit_code == 0, result.output
    assert str(path) in result.output.replace("\n", "")
    assert path.read_bytes() == half.encode()
    assert list(entries(parsed(other), "mcpServers")) == ["pegboard"]


@pytest.mark.parametrize("client", BY_CLIENT)
def test_a_link_is_followed_and_a_read_only_file_is_left_alone(
    run: Run, machine: Path, project: Path, client: str
) -> None:
    sample = BY_CLIENT[client]
    real = machine / "dotfiles" / "file"
    real.parent.mkdir()
    real.write_text(sample.text)
    path = machine / sample.file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(real)
    real.chmod(0o444)
    refused = run("init", "--write")
    assert refused.exit_code == 2
    assert "read-only" in refused.output
    assert real.read_text() == sample.text

    real.chmod(0o644)
    assert run("init", "--write").exit_code == 0
    assert "pegboard" in entries(parsed(path), sample.place)
    assert run("init", "--undo").exit_code == 0
    assert path.is_symlink()
    assert real.read_text() == sample.text


def test_every_client_has_a_sample() -> None:
    assert {client.name for client in clients()} == set(BY_CLIENT)
    assert len(BY_CLIENT) >= 16


@pytest.mark.parametrize(
    ("client", "scope", "platform", "expected"),
    [
        ("claude-desktop", "user", "darwin", "home/Library/Application Support/Claude/claude_desktop_config.json"),
        ("claude-desktop", "user", "win32", "home/AppData/Roaming/Claude/claude_desktop_config.json"),
        ("goose", "user", "darwin", "home/.config/goose/config.yaml"),
        ("goose", "user", "win32", "home/AppData/Roaming/Block/goose/config/config.yaml"),
        ("zed", "user", "win32", "home/AppData/Roaming/Zed/settings.json"),
        ("vscode", "user", "darwin", "home/Library/Application Support/Code/User/mcp.json"),
        ("vscode", "project", "win32", "work/.vscode/mcp.json"),
        ("codex", "user", "win32", "home/.codex/config.toml"),
    ],
)
def test_files_are_where_each_system_has_them(
    monkeypatch: pytest.MonkeyPatch, client: str, scope: str, platform: str, expected: str
) -> None:
    monkeypatch.delenv("APPDATA", raising=False)
    row: Client = next(each for each in clients() if (each.name, each.scope) == (client, scope))

    assert row.path(Path("home"), Path("work"), platform) == Path(expected)


def test_the_three_scopes_of_claude_code_do_not_hide_each_other(run: Run, machine: Path, project: Path) -> None:
    local = {"mcpServers": {"mine": {"command": "mine"}}, "history": [1]}
    other = {"mcpServers": {"theirs": {"command": "t"}}}
    document = {
        "mcpServers": {"all": {"command": "all"}},
        "projects": {str(project): local, "/src/other": other},
    }
    user = machine / ".claude.json"
    user.write_text(json.dumps(document, indent=2))
    shared = project / ".mcp.json"
    shared.write_text('{"mcpServers": {"ours": {"command": "ours"}}}')
    before = [user.read_bytes(), shared.read_bytes()]
    assert run("init", "--write").exit_code == 0

    now = json.loads(user.read_text())
    of_local, of_user = now["projects"][str(project)]["mcpServers"], now["mcpServers"]
    of_project = json.loads(shared.read_text())["mcpServers"]
    assert [*of_user, *of_project, *of_local] == ["pegboard", "pegboard-project", "pegboard-local"]
    boards = [next(iter(each.values()))["args"][-1] for each in (of_user, of_project, of_local)]
    assert [list(tomllib.loads(Path(board).read_text())["servers"]) for board in boards] == [
        ["all"],
        ["ours"],
        ["mine"],
    ]
    assert Path(boards[2]).parent == own_file().parent / "projects", "a user's own, outside the project"
    assert tomllib.loads(Path(boards[2]).read_text())["servers"]["mine"]["cwd"] == str(project)
    assert now["projects"]["/src/other"] == other
    assert now["projects"][str(project)]["history"] == [1]

    assert run("init", "--undo").exit_code == 0
    assert [user.read_bytes(), shared.read_bytes()] == before


def test_what_was_moved_for_one_project_comes_back_from_any_folder(
    run: Run, machine: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = machine / ".claude.json"
    user.write_text(json.dumps({"projects": {str(project): {"mcpServers": {"mine": {"command": "mine"}}}}}))
    before = user.read_bytes()
    run("init", "--write")
    monkeypatch.chdir(machine)
    run("init", "--undo")

    assert user.read_bytes() == before


@pytest.mark.parametrize(
    ("client", "old", "new", "reason"),
    [
        ("goose", "    env_keys: []\n", "    env_keys: [SECRET]\n", "env_keys"),
        ("codex", 'command = "npx"', 'command = "npx"\nenv_vars = ["SECRET"]', "env_vars"),
        ("opencode", '"/srv"]', '"{file:~/folder}"]', "{file:~/folder}"),
        ("continue", "      - /srv\n", "      - ${{ secrets.FOLDER }}\n", "secrets.FOLDER"),
    ],
)
def test_what_only_one_client_understands_stays_with_it(
    run: Run, machine: Path, project: Path, client: str, old: str, new: str, reason: str
) -> None:
    sample = BY_CLIENT[client]
    path = put(machine, sample, sample.text.replace(old, new).encode())
    result = run("init", "--write")

    assert reason in result.output
    assert {"files", "pegboard"} <= set(entries(parsed(path), sample.place))
    assert set(boards_servers()) == {"search"}


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (".codex/config.toml", 'mcp_servers = { files = { command = "npx" } }\n'),
        (".codex/config.toml", '[mcp_servers]\nfiles = { command = "npx" }\n'),
        (".config/goose/config.yaml", "extensions: {files: {cmd: npx, type: stdio}}\n"),
        (".continue/config.yaml", "x: &a {name: files, command: npx}\nmcpServers: [*a]\n"),
    ],
)
def test_a_form_that_cannot_be_edited_safely_is_left_out_and_named(
    run: Run, machine: Path, project: Path, file: str, text: str
) -> None:
    path = machine / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    put(machine, BY_CLIENT["kiro"], BY_CLIENT["kiro"].text.encode())
    result = run("init", "--write")

    assert result.exit_code == 0, result.output
    assert "cannot be changed safely" in result.output
    assert path.read_text() == text


EDITS = ("init", "undo", "add", "delete", "setting", "remark", "rewrite", "forget")
REMARKS = {".json": "// a remark {}\n", ".toml": "# a remark {}\n", ".yaml": "# a remark {}\n"}


@contextmanager
def machine_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    home = folder / "home"
    work = home / "work"
    work.mkdir(parents=True)
    with monkeypatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.delenv("XDG_CONFIG_HOME", raising=False)
        patch.chdir(work)
        patch.setattr("shutil.which", lambda _program: "/opt/bin/pegboard")
        yield home


class User:
    """Somebody who edits one client's file by hand, and what must never be lost: ``mine`` and ``remarks``."""

    def __init__(self, sample: Sample, path: Path) -> None:
        self.sample, self.path = sample, path
        self.mine = set(entries(parsed(path), sample.place))
        self.remarks: list[str] = []
        self.number = 0

    def here(self) -> dict[str, Any]:
        return entries(parsed(self.path), self.sample.place)

    def does(self, edit: str) -> None:
        self.number += 1
        {"init": self.init, "undo": self.undo}.get(edit, lambda: self.edits(edit))()

    def init(self) -> None:
        before = self.path.read_bytes()
        _init([], None, write=True)
        after = self.path.read_bytes()
        if after != before and b"pegboard" not in before:  # else the first init is undone too
            _undo([])
            assert self.path.read_bytes() == before, "init and undo with nothing between them"
            _init([], None, write=True)
            assert self.path.read_bytes() == after

    def undo(self) -> None:
        _undo([])

    def edits(self, edit: str) -> None:
        text, suffix, name = self.path.read_bytes().decode(), self.path.suffix, f"new{self.number}"
        here = self.here()
        if edit == "remark":
            remark = REMARKS[suffix].format(self.number)
            self.remarks.append(remark.strip())
            self.path.write_bytes((text.rstrip("\n") + "\n" + remark).encode())
        elif edit == "add":
            self.path.write_bytes(self.with_server(text, name, suffix).encode())
            self.mine.add(name)
        elif edit == "setting":
            start = {".json": ("{", '{"s%d": 1,'), ".toml": ("", "s%d = 1\n"), ".yaml": ("", "s%d: 1\n")}[suffix]
            setting = start[1] % self.number
            text = text.replace("{", setting, 1) if suffix == ".json" else setting + text
            self.path.write_bytes(text.encode())
            self.remarks.append(f"s{self.number}")
        elif edit == "rewrite" and suffix == ".json" and not self.remarks:
            self.path.write_text(json.dumps(parsed(self.path), indent=1))
        elif edit in ("delete", "forget") and suffix == ".json" and len(here) > 1:
            gone = "pegboard" if edit == "forget" else next((each for each in here if each != "pegboard"), "")
            if gone in here:
                document = parsed(self.path)
                del document[self.sample.place][gone]
                self.path.write_text(json.dumps(document, indent=3) + "".join(f"\n// {each}" for each in self.remarks))
                self.mine.discard(gone)

    def with_server(self, text: str, name: str, suffix: str) -> str:
        place = self.sample.place
        if suffix == ".toml":
            return text.rstrip("\n") + f'\n\n[{place}.{name}]\ncommand = "{name}"\n'
        if suffix == ".yaml":
            start = f"{place}:\n"
            line = text[text.index(start) + len(start) :]
            margin = " " * (len(line) - len(line.lstrip(" ")))
            item = f"{margin}- name: {name}\n{margin}  command: {name}\n"
            entry = f"{margin}{name}:\n{margin}  type: stdio\n{margin}  cmd: {name}\n"
            return text.replace(start, start + (item if self.sample.client == "continue" else entry), 1)
        at = text.index("{", text.index(f'"{place}"'))
        return f'{text[: at + 1]}"{name}": {{"command": "{name}"}},{text[at + 1 :]}'

    def check(self) -> None:
        text = self.path.read_bytes().decode()
        assert [each for each in self.remarks if each not in text] == []
        here, board = self.here(), boards_servers()
        assert self.mine <= set(here) | set(board), "every server is with the client or on the board"


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
@pytest.mark.parametrize("client", ["cursor", "vscode", "codex", "goose", "continue"])
def test_nothing_is_lost_in_any_order_of_init_edits_and_undo(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, client: str, data: st.DataObject
) -> None:
    sample = BY_CLIENT[client]
    edits = data.draw(st.lists(st.sampled_from(EDITS), max_size=8))
    with machine_of(tmp_path_factory.mktemp("any"), monkeypatch) as home:
        path = put(home, sample, sample.text.encode())
        user = User(sample, path)
        for edit in edits:
            user.does(edit)
            user.check()
        had_entry = "pegboard" in user.here()
        user.undo()
        user.check()
        if had_entry and "forget" not in edits:
            assert user.mine <= set(user.here()), "after undo everything is with the client"
            assert "pegboard" not in user.here()
