"""Where MCP clients keep their servers, and how they write an entry: the rows of ``client_files.toml``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from platformdirs import user_config_path

from pegboard import operating_system
from pegboard.errors import ConfigError

OWN_NAME = "pegboard.toml"
HOME = "~/"
DATA = "{data}/"
FOLDER = "{folder}"
Scope = Literal["user", "project", "local"]
"""Whose servers a file has: the user's, a project's, or the user's own for one project."""
PLACES = frozenset({"project", "local", "user", "local_place", "windows"})
"""Columns that say where a client's files are."""
USUAL_PLACES = (("mcpServers",), ("servers",))
SETTINGS_FOLDERS = frozenset({".vscode", ".cursor", ".gemini", ".qwen", ".codex", ".roo", ".github", ".continue"})
"""Folders of a project in which clients keep their settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A configuration file of an MCP client, and how its entries differ from ``mcpServers`` as most clients write it.

    The columns are explained in ``client_files.toml``.
    """

    name: str
    scope: Scope
    file: str
    windows: str = ""
    place: tuple[str, ...] = ("mcpServers",)
    fields: Mapping[str, str] = field(default_factory=dict)
    spelling: Mapping[str, Any] = field(default_factory=dict)
    named: str = ""
    listed: bool = False
    command_list: bool = False
    within: str = ""
    sse: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    keeps: tuple[str, ...] = ()
    source: str = ""
    checked: date | None = None

    def path(self, home: Path, folder: Path, platform: str = "") -> Path:
        """The path of the file, which may not exist, on this or another ``platform`` (as `sys.platform`)."""
        platform = platform or operating_system.PLATFORM
        file = self.windows if self.windows and platform == operating_system.WINDOWS else self.file
        if file.startswith(HOME):
            return home / file.removeprefix(HOME)
        if file.startswith(DATA):
            return operating_system.application_data(home, platform) / file.removeprefix(DATA)
        return folder / file

    @property
    def differs(self) -> bool:
        """Whether its entries, or the place of its servers, are not as in other clients' files."""
        return bool(self.fields or self.command_list or self.named or self.place not in USUAL_PLACES)

    def place_in(self, folder: Path) -> tuple[str, ...]:
        """The keys that lead to the servers, for the project in ``folder``."""
        return tuple(str(folder) if key == FOLDER else key for key in self.place)

    def common(self, entry: Any) -> Any:
        """The entry as most clients write it. Raises ConfigError with the reason if only this client understands it."""
        if not isinstance(entry, Mapping):
            return entry
        for name in self.keeps:
            if entry.get(name):
                raise ConfigError(f"Its field {name!r} is understood only by its client.")
        if self.within and isinstance(inner := entry.get(self.within), Mapping):
            entry = {key: value for key, value in entry.items() if key != self.within} | {**inner}
        theirs = {path.partition(".")[0] for path in self.fields.values()} | {*self.fields, self.sse, self.named}
        made = {key: value for key, value in entry.items() if key not in theirs}
        found = {ours: _at(entry, path) for ours, path in self.fields.items()}
        made |= {ours: value for ours, value in found.items() if value is not None}
        if self.sse and "url" not in made and entry.get(self.sse):
            made |= {"url": entry[self.sse], "type": entry.get("type", "sse")}
        return self._translated(_one_command(made) | _tokens(entry, made) | _switch(entry))

    def entry(self, name: str, command: Sequence[str]) -> dict[str, Any]:
        """The entry by which this client starts ``command``."""
        program, *args = command
        started: dict[str, Any] = (
            {"command": [program, *args]} if self.command_list else {"command": program, "args": args}
        )
        named = {self.named: name} if self.named else {}
        ours = {self.fields.get(key, key): value for key, value in started.items()}
        return {**named, **self.spelling, **ours}

    def _translated(self, value: Any) -> Any:
        if isinstance(value, str):
            for theirs, ours in self.variables.items():
                value = re.sub(theirs, ours, value)
            return value
        if isinstance(value, Mapping):
            return {key: self._translated(each) for key, each in value.items()}
        return [self._translated(each) for each in value] if isinstance(value, list) else value


def _at(entry: Mapping[str, Any], path: str) -> Any:
    value: Any = entry
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _one_command(entry: Mapping[str, Any]) -> dict[str, Any]:
    """With the command as a text: some clients write the program and its arguments as a list or an object."""
    command = entry.get("command")
    made = dict(entry)
    if isinstance(command, list) and command and all(isinstance(word, str) for word in command):
        made |= {"command": command[0], "args": [*command[1:], *(entry.get("args") or [])]}
    elif isinstance(command, Mapping):  # Zed before 0.200
        made |= {"command": command.get("path"), "args": command.get("args") or [], "env": command.get("env") or {}}
    return made


def _tokens(entry: Mapping[str, Any], made: Mapping[str, Any]) -> dict[str, Any]:
    """Headers whose values Codex reads from environment variables."""
    named = entry.get("env_http_headers")
    headers = {key: f"${{{name}}}" for key, name in named.items()} if isinstance(named, Mapping) else {}
    if variable := entry.get("bearer_token_env_var"):
        headers["Authorization"] = f"Bearer ${{{variable}}}"
    return {"headers": {**(made.get("headers") or {}), **headers}} if headers else {}


def _switch(entry: Mapping[str, Any]) -> dict[str, Any]:
    enabled = entry.get("enabled")
    is_off = enabled is False or (isinstance(enabled, str) and enabled.lower() in ("no", "off"))  # YAML 1.1
    return {"disabled": True} if is_off else {}


@cache
def clients() -> tuple[Client, ...]:
    """All known files: a project's, then a project's part of a user's, then a user's, each in the table's order."""
    table = tomllib.loads(files("pegboard.settings").joinpath("client_files.toml").read_text("utf-8"))
    scopes: tuple[Scope, ...] = ("project", "local", "user")
    return tuple(
        _client(name, scope, file, row)
        for scope in scopes
        for name, row in table.items()
        for file in row.get(scope, ())
    )


def _client(name: str, scope: Scope, file: str, row: Mapping[str, Any]) -> Client:
    about = {key: value for key, value in row.items() if key not in PLACES}
    place = row["local_place"] if scope == "local" else row.get("place", ["mcpServers"])
    lists = {"place": tuple(place), "keeps": tuple(row.get("keeps", ()))}
    windows = row.get("windows", "") if scope == "user" else ""
    return Client(**about | lists, name=name, scope=scope, file=file, windows=windows)


def client_of(path: Path) -> Client | None:
    """The row whose file this path is, for this user and the current folder. A user's part goes before a local one."""
    home, folder = Path.home(), Path.cwd()
    found = [client for client in clients() if client.path(home, folder) == path.absolute()]
    return next((client for client in found if client.scope != "local"), None)


def project_of(path: Path) -> Path:
    """The project folder of a configuration file, not its client's settings folder."""
    folder = path.parent
    if folder.name == "settings" and folder.parent.name == ".kiro":
        return folder.parent.parent
    return folder.parent if folder.name in SETTINGS_FOLDERS else folder


def own_file() -> Path:
    """The path of the user's own pegboard.toml, which may not exist."""
    return user_config_path("pegboard", appauthor=False) / OWN_NAME


def usual_files(home: Path, folder: Path) -> Iterator[Path]:
    """The existing configuration files of Pegboard and of clients, the nearest first."""
    near = [client.path(home, folder) for client in clients() if client.scope == "project"]
    far = [client.path(home, folder) for client in clients() if client.scope == "user"]
    candidates = [folder / OWN_NAME, *near, own_file(), *far]
    return (path for path in dict.fromkeys(candidates) if path.is_file())


def is_projects(path: Path, home: Path, folder: Path) -> bool:
    """Whether a file belongs to the project folder, and so was written by the project's author: a client's file of a
    project, or a pegboard.toml that is not the user's own."""
    if path == folder / OWN_NAME:
        return path != own_file()
    users = {client.path(home, folder) for client in clients() if client.scope != "project"}
    return path not in users and path in {client.path(home, folder) for client in clients()}
