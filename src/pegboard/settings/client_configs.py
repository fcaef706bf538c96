"""Reads the servers in the configuration of an MCP client. Most clients write:

Claude Desktop, Cursor   {"mcpServers": {NAME: {...}}}
Claude Code              the same in .mcp.json; ~/.claude.json also has {"projects": {PATH: {"mcpServers": …}}}
VS Code                  {"servers": {NAME: {...}}, "inputs": […]}, or {"mcp": {"servers": …}} in its settings

``client_files.toml`` says how others do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pegboard.errors import ConfigError
from pegboard.settings.client_files import Client, client_of, project_of
from pegboard.settings.documents import syntax_of
from pegboard.settings.server_spec import ServerSpec

VERSION = re.compile(r"(?<=.)[@=<>~!\[].*$")
"""The version after a package's name: `pegboard@latest`, `pegboard==0.1`."""


def load_document(path: Path) -> dict[str, Any]:
    """A client's file: JSON with comments and trailing commas, TOML or YAML. Raises ConfigError."""
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
    syntax = syntax_of(path)
    try:
        document = syntax.parse(text)
    except ValueError as error:
        raise ConfigError(f"{str(path)!r} is not {syntax.name}: {error}.", remedy="Correct the file there.") from error
    if not isinstance(document, dict):
        raise ConfigError(f"{str(path)!r} is not a {syntax.name} object.", remedy='Expected {"mcpServers": {…}}.')
    return document


def entries_at(document: Mapping[str, Any], client: Client, place: Sequence[str], path: Path) -> dict[str, Any]:
    """The entries of a client's file by name, as written; none if the place is not there. Raises ConfigError."""
    found: Any = document
    for key in place:
        found = found.get(key) if isinstance(found, Mapping) else None
    if found is None:
        return {}
    if client.listed and isinstance(found, list):
        return {str(each.get(client.named)): each for each in found if isinstance(each, Mapping)}
    if not isinstance(found, Mapping):
        raise ConfigError(f"The servers in {str(path)!r} are not an object.")
    return dict(found)


def servers_in(path: Path) -> dict[str, ServerSpec]:
    """All servers of a client's file, read as its client reads it. Raises ConfigError."""
    document = load_document(path)
    client = client_of(path)
    if client is None or not client.differs:
        return servers_of(document, path)
    entries: dict[str, Any] = {}
    for name, entry in entries_at(document, client, client.place, path).items():
        with suppress(ConfigError):  # only its client can start it
            entries[name] = client.common(entry)
    started = {name: entry for name, entry in entries.items() if {"command", "url"} & set(entry or ())}
    return servers_of({"mcpServers": started}, path)


def servers_of(document: Mapping[str, Any], path: Path, folder: Path | None = None) -> dict[str, ServerSpec]:
    """All servers of a configuration of a project's ``folder``. Raises ConfigError for an entry that cannot be read."""
    entries = _entries(document, path)
    return {name: _spec(name, entry, path, folder or project_of(path.absolute())) for name, entry in entries.items()}


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


def _spec(name: str, entry: Any, path: Path, folder: Path) -> ServerSpec:
    if not isinstance(entry, Mapping):
        raise ConfigError(f"Server {name!r} in {str(path)!r} is not an object.", remedy='Expected {"command": …}.')
    fields = dict(entry) | {"name": name, "folder": str(folder)}
    if "serverUrl" in fields:
        fields.setdefault("url", fields.pop("serverUrl"))
    try:
        return ServerSpec.model_validate(fields)
    except ValidationError as error:
        raise ConfigError(
            f"Server {name!r} in {str(path)!r}: {sentences(error)}.", remedy="Correct the entry."
        ) from error


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
