"""`mcpServers` as Claude Desktop, Claude Code, Cursor and VS Code write it: one meaning, four spellings.

Claude Desktop, Cursor   {"mcpServers": {NAME: {...}}}
Claude Code              the same in .mcp.json; ~/.claude.json also has {"projects": {PATH: {"mcpServers": …}}}
VS Code                  {"servers": {NAME: {...}}, "inputs": […]}, or {"mcp": {"servers": …}} in its settings
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import json5
from pydantic import ValidationError

from pegboard.errors import ConfigError
from pegboard.server_spec import ServerSpec


def load_document(path: Path) -> dict[str, Any]:
    """A JSON file as editors write them, comments and trailing commas allowed."""
    try:
        document = json5.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise ConfigError(
            f"Cannot read {str(path)!r}: {error}.", remedy="Check the path given with --config."
        ) from error
    except ValueError as error:
        raise ConfigError(f"{str(path)!r} is not JSON: {error}.", remedy="Correct the file at that place.") from error
    if not isinstance(document, dict):
        raise ConfigError(f"{str(path)!r} is not a JSON object.", remedy='Expected {"mcpServers": {…}}.')
    return document


def servers_of(document: Mapping[str, Any], path: Path) -> dict[str, ServerSpec]:
    """Every server of a configuration; raises ConfigError for an entry that cannot be read."""
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
    fields = dict(entry) | {"name": name, "folder": str(_project(path.absolute()))}
    if "serverUrl" in fields:
        fields.setdefault("url", fields.pop("serverUrl"))
    try:
        return ServerSpec.model_validate(fields)
    except ValidationError as error:
        raise ConfigError(
            f"Server {name!r} in {str(path)!r}: {sentences(error)}.", remedy="Correct the entry."
        ) from error


def _project(path: Path) -> Path:
    """The folder a configuration is about: that of the project, not of its editor's settings."""
    return path.parent.parent if path.parent.name in (".vscode", ".cursor") else path.parent


def sentences(error: ValidationError) -> str:
    """What pydantic found, without the values, which may be secret (M30)."""
    return "; ".join(
        ": ".join(filter(None, (".".join(map(str, each["loc"])), each["msg"].removeprefix("Value error, "))))
        for each in error.errors(include_url=False, include_input=False)
    )


def usual_files(home: Path, folder: Path) -> Iterator[Path]:
    """Client configuration files that exist, the nearest first."""
    candidates = [
        folder / "pegboard.toml",
        folder / ".mcp.json",
        folder / ".cursor" / "mcp.json",
        folder / ".vscode" / "mcp.json",
        home / ".cursor" / "mcp.json",
        home / ".claude.json",
        _application_data(home) / "Claude" / "claude_desktop_config.json",
        _application_data(home) / "Code" / "User" / "mcp.json",
    ]
    return (path for path in dict.fromkeys(candidates) if path.is_file())


def _application_data(home: Path) -> Path:
    if sys.platform == "darwin":
        return home / "Library" / "Application Support"
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA", home / "AppData" / "Roaming"))
    return Path(os.environ.get("XDG_CONFIG_HOME", home / ".config"))
