"""Reads `mcpServers` as Claude Desktop, Claude Code, Cursor and VS Code write it.

Claude Desktop, Cursor   {"mcpServers": {NAME: {...}}}
Claude Code              the same in .mcp.json; ~/.claude.json also has {"projects": {PATH: {"mcpServers": …}}}
VS Code                  {"servers": {NAME: {...}}, "inputs": […]}, or {"mcp": {"servers": …}} in its settings
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import json5
from platformdirs import user_config_path
from pydantic import ValidationError

from pegboard.errors import ConfigError
from pegboard.settings.server_spec import ServerSpec

OWN_NAME = "pegboard.toml"
VERSION = re.compile(r"(?<=.)[@=<>~!\[].*$")
"""The version after a package's name: `pegboard@latest`, `pegboard==0.1`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A configuration file of an MCP client: ``file`` is relative to the home or project folder, ``data`` to the folder
    of application data.

    ``place`` is the path of keys to its servers; ``spelling`` are fields that every entry has in addition.
    """

    name: str
    scope: Literal["user", "project"]
    file: str = ""
    data: str = ""
    place: tuple[str, ...] = ("mcpServers",)
    spelling: Mapping[str, Any] = field(default_factory=dict)

    def path(self, home: Path, folder: Path) -> Path:
        if self.data:
            return application_data(home) / self.data
        return (folder if self.scope == "project" else home) / self.file


VS_CODE: Mapping[str, Any] = {"place": ("servers",), "spelling": {"type": "stdio"}}

CLIENTS = (
    Client(name="claude-code", scope="project", file=".mcp.json"),
    Client(name="cursor", scope="project", file=".cursor/mcp.json"),
    Client(name="vscode", scope="project", file=".vscode/mcp.json", **VS_CODE),
    Client(name="cursor", scope="user", file=".cursor/mcp.json"),
    Client(name="claude-code", scope="user", file=".claude.json"),
    Client(name="claude-desktop", scope="user", data="Claude/claude_desktop_config.json"),
    Client(name="vscode", scope="user", data="Code/User/mcp.json", **VS_CODE),
)
"""All known files, the nearest first. To support another client, add a row."""


def load_document(path: Path) -> dict[str, Any]:
    """A JSON file as editors write it, with comments and trailing commas. Raises ConfigError."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(
            f"Cannot read {str(path)!r}: {error}.", remedy="Check the path given with --config."
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{str(path)!r} is not UTF-8: {error}.", remedy="Correct the file there.") from error
    return parse_document(text, path)


def parse_document(text: str, path: Path) -> dict[str, Any]:
    """Parse ``text``. Raises ConfigError that names ``path``."""
    try:
        document = _parsed(text)
    except ValueError as error:
        raise ConfigError(f"{str(path)!r} is not JSON: {error}.", remedy="Correct the file there.") from error
    if not isinstance(document, dict):
        raise ConfigError(f"{str(path)!r} is not a JSON object.", remedy='Expected {"mcpServers": {…}}.')
    return document


def _parsed(text: str) -> Any:
    """Plain JSON is tried first: a client's file can have megabytes, and the parser for comments is slow."""
    try:
        return json.loads(text)
    except ValueError:
        return json5.loads(text)


def servers_of(document: Mapping[str, Any], path: Path) -> dict[str, ServerSpec]:
    """All servers of a configuration. Raises ConfigError for an entry that cannot be read."""
    entries = _entries(document, path)
    return {name: _spec(name, entry, path) for name, entry in entries.items()}


def _entries(document: Mapping[str, Any], path: Path) -> dict[str, Any]:
    editor = document.get("mcp")
    places = [document.get("mcpServers"), document.get("servers")]
    places += [editor.get("servers")] if isinstance(editor, Mapping) else []
    projects = document.get("projects")
    here = projects.get(str(Path.cwd())) if isinstance(projects, Mapping) else None
    places += [here.get("mcpServers")] if isinstance(here, Mapping) else []
    found = [place for place in places if place is not None]
    if not found:
        raise ConfigError(
            f"{str(path)!r} names no servers.",
            remedy='Expected {"mcpServers": {NAME: {"command": …}}} or {"servers": …}.',
        )
    entries: dict[str, Any] = {}
    for place in found:
        if not isinstance(place, Mapping):
            raise ConfigError(f"The servers in {str(path)!r} are not an object.", remedy="Expected {NAME: {…}}.")
        entries |= place
    return entries


def _spec(name: str, entry: Any, path: Path) -> ServerSpec:
    if not isinstance(entry, Mapping):
        raise ConfigError(f"Server {name!r} in {str(path)!r} is not an object.", remedy='Expected {"command": …}.')
    fields = dict(entry) | {"name": name, "folder": str(project_of(path.absolute()))}
    if "serverUrl" in fields:
        fields.setdefault("url", fields.pop("serverUrl"))
    try:
        return ServerSpec.model_validate(fields)
    except ValidationError as error:
        raise ConfigError(
            f"Server {name!r} in {str(path)!r}: {sentences(error)}.", remedy="Correct the entry."
        ) from error


def project_of(path: Path) -> Path:
    """The project folder of a configuration file, not its editor's settings folder."""
    return path.parent.parent if path.parent.name in (".vscode", ".cursor") else path.parent


def sentences(error: ValidationError) -> str:
    """Pydantic's messages without the values, which may be secret (M30)."""
    return "; ".join(
        ": ".join(filter(None, (".".join(map(str, each["loc"])), each["msg"].removeprefix("Value error, "))))
        for each in error.errors(include_url=False, include_input=False)
    )


def is_pegboard(spec: ServerSpec) -> bool:
    """Whether a server is `pegboard mcp`.

    >>> is_pegboard(ServerSpec(name="tools", command="uvx", args=("pegboard", "mcp")))
    True
    """
    words = [VERSION.sub("", Path(word).name).removesuffix(".exe") for word in (spec.command or "", *spec.args)]
    return any(pair == ("pegboard", "mcp") for pair in pairwise(words))


def own_file() -> Path:
    """The path of the user's own pegboard.toml, which may not exist."""
    return user_config_path("pegboard", appauthor=False) / OWN_NAME


def usual_files(home: Path, folder: Path) -> Iterator[Path]:
    """The existing configuration files of Pegboard and of clients, the nearest first."""
    near = [client.path(home, folder) for client in CLIENTS if client.scope == "project"]
    far = [client.path(home, folder) for client in CLIENTS if client.scope == "user"]
    candidates = [folder / OWN_NAME, *near, own_file(), *far]
    return (path for path in dict.fromkeys(candidates) if path.is_file())


def is_projects(path: Path, home: Path, folder: Path) -> bool:
    """Whether a client's file belongs to the project folder, and so was written by the project's author."""
    users = {client.path(home, folder) for client in CLIENTS if client.scope == "user"}
    return path not in users and path in {client.path(home, folder) for client in CLIENTS}


def application_data(home: Path) -> Path:
    if sys.platform == "darwin":
        return home / "Library" / "Application Support"
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA", home / "AppData" / "Roaming"))
    return Path(os.environ.get("XDG_CONFIG_HOME", home / ".config"))
