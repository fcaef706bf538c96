"""Moves servers from the files of clients into pegboard.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from pegboard.apps.cli.atomic_files import FileChanges
from pegboard.errors import ConfigError
from pegboard.settings import read_file
from pegboard.settings.client_configs import CLIENTS, OWN_NAME, Client, own_file, parse_document, project_of
from pegboard.settings.client_import import (
    ClientFile,
    JsonObject,
    Plan,
    entry_for,
    entry_name,
    existing_servers,
    hiding,
    plan,
    replaced,
)
from pegboard.settings.jsonc import with_value

BACKUP = ".before-pegboard"
HEADING = "# The MCP servers behind Pegboard. `pegboard doctor` checks them.\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientChange:
    """The change of a client's file whose servers become one ``entry``, with its new ``servers`` and ``text``."""

    file: ClientFile
    entry: JsonObject
    servers: JsonObject
    text: str
    backup: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """The new content of one pegboard.toml and the changed clients that start it. ``before`` is None for a new file."""

    target: Path
    before: bytes | None
    text: str
    plan: Plan
    changes: tuple[ClientChange, ...]


def client_files(home: Path, folder: Path, names: Sequence[str] = ()) -> tuple[list[ClientFile], list[str]]:
    """The files with servers of these clients (of all, if none is named), and notes on what was left out."""
    files: list[ClientFile] = []
    notes: list[str] = []
    for client, path in rows(home, folder, names):
        try:
            file, said = read(client, path)
        except ConfigError as error:
            notes.append(f"Left out: {error.message}")
        else:
            files += [file] if file else []
            notes += said
    return files, notes


def rows(home: Path, folder: Path, names: Sequence[str] = ()) -> list[tuple[Client, Path]]:
    """The rows of the table of clients with their paths, each path once. Raises ConfigError for an unknown client."""
    known = sorted({client.name for client in CLIENTS})
    if unknown := sorted(set(names) - set(known)):
        raise ConfigError(f"There is no client {unknown[0]!r}.", remedy=f"Known are {', '.join(known)}.")
    wanted = [client for client in CLIENTS if not names or client.name in names]
    by_path = {client.path(home, folder): client for client in wanted}
    return [(client, path) for path, client in by_path.items()]


def read(client: Client, path: Path) -> tuple[ClientFile | None, list[str]]:
    try:
        text = path.read_bytes().decode()
    except FileNotFoundError:
        return None, []
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"Cannot read {str(path)!r}: {error}.") from error
    document = parse_document(text.lstrip("\ufeff"), path)
    entries: Any = document
    for key in client.place:
        entries = entries.get(key, {}) if isinstance(entries, Mapping) else {}
    if not isinstance(entries, Mapping):
        raise ConfigError(f"The servers in {str(path)!r} are not an object.")
    file = ClientFile(client=client, path=path, text=text, entries=entries)
    return (file if entries else None), _of_projects(document, path)


def _of_projects(document: Mapping[str, Any], path: Path) -> list[str]:
    """Claude Code keeps servers of single projects in its user file; they apply to one folder only."""
    projects = document.get("projects")
    found = projects.items() if isinstance(projects, Mapping) else ()
    return [
        f"Stays in {path}: {len(about['mcpServers'])} servers that are only for the project {folder}."
        for folder, about in found
        if isinstance(about, Mapping) and about.get("mcpServers")
    ]


def adoptions(files: Iterable[ClientFile], command: Sequence[str], to: Path | None = None) -> list[Adoption]:
    """What would be written where: a project's servers into the project, a user's into the user's own file, or all to
    one file. Raises ConfigError for a pegboard.toml that cannot be read or extended.
    """
    groups: dict[Path, list[ClientFile]] = {}
    for file in files:
        groups.setdefault(to or _place(file), []).append(file)
    return [_adoption(target.absolute(), of_target, command) for target, of_target in groups.items()]


def _place(file: ClientFile) -> Path:
    return own_file() if file.client.scope == "user" else project_of(file.path) / OWN_NAME


def _adoption(target: Path, files: Sequence[ClientFile], command: Sequence[str]) -> Adoption:
    if target.suffix != ".toml":
        raise ConfigError(f"{str(target)!r} does not end in .toml.", remedy="Choose a name that does.")
    document = raw_document(target) if target.exists() else {}
    before = target.read_bytes() if target.exists() else None
    made = plan(existing_servers(document, target), files)
    changes: dict[Path, ClientChange] = {}
    users: dict[str, JsonObject] = {}
    for file in sorted(files, key=lambda file: file.client.scope != "user"):
        change = _change(file, made, command, target, users.get(file.client.name, {}))
        if change:
            changes[file.path] = change
        if file.client.scope == "user":
            users[file.client.name] = change.servers if change else file.entries
    return Adoption(
        target=target,
        before=before,
        text=_extended((before or HEADING.encode()).decode(), document, made.new, target),
        plan=made,
        changes=tuple(changes[file.path] for file in files if file.path in changes),
    )


def raw_document(path: Path) -> dict[str, Any]:
    """A pegboard.toml without defaults. Raises ConfigError."""
    read_file(path)
    return tomllib.loads(path.read_text("utf-8"))


def _extended(text: str, document: JsonObject, new: JsonObject, target: Path) -> str:
    """The text with new servers at the end; everything else, including comments, stays unchanged."""
    if not new:
        return text
    gap = "" if not text or text.endswith("\n\n") else "\n" if text.endswith("\n") else "\n\n"
    extended = text + gap + tomli_w.dumps({"servers": dict(new)})
    expected = {**document, "servers": {**document.get("servers", {}), **new}}
    try:
        fits = tomllib.loads(extended) == expected
    except tomllib.TOMLDecodeError:
        fits = False
    if not fits:
        raise ConfigError(
            f"{str(target)!r} has its servers in a form that cannot be extended.",
            remedy="Write them as tables, [servers.NAME], or choose another file with --to.",
        )
    return extended


def _change(
    file: ClientFile, made: Plan, command: Sequence[str], target: Path, users: JsonObject
) -> ClientChange | None:
    gone = [moved.server for moved in made.moved if moved.file is file]
    if not gone:
        return None
    entry = entry_for(file.client, command, target)
    servers = replaced(file, gone, entry, entry_name(file, target, users))
    return ClientChange(
        file=file,
        entry=entry,
        servers=servers,
        text=with_servers(file, servers),
        backup=next_backup(file.path),
    )


def with_servers(file: ClientFile, servers: JsonObject) -> str:
    """The file's text with new servers; everything else stays unchanged. Raises ConfigError."""
    text = with_value(file.text, file.client.place, servers)
    expected = parse_document(file.text.lstrip("\ufeff"), file.path)
    inner = expected
    for key in file.client.place[:-1]:
        inner = inner[key]
    inner[file.client.place[-1]] = servers
    if parse_document(text.lstrip("\ufeff"), file.path) != expected:
        raise ConfigError(
            f"{str(file.path)!r} has a form that cannot be changed safely.",
            remedy="Leave that client out: name the others with --client.",
        )
    return text


def hidden(files: Sequence[ClientFile], adoptions: Iterable[Adoption]) -> list[str]:
    """Notes on entries for different boards that have one name in a user's and a project's file."""
    after = {change.file.path: change.servers for each in adoptions for change in each.changes}
    users = {file.client.name: file for file in files if file.client.scope == "user"}
    pairs = [
        (users[file.client.name], file)
        for file in files
        if file.client.scope == "project" and file.client.name in users
    ]
    return [
        f"{user.path} and {file.path} both start Pegboard as {name!r}, and {file.client.name} starts only the "
        f"project's: rename one of the two."
        for user, file in pairs
        for name in hiding(after.get(user.path, user.entries), after.get(file.path, file.entries))
    ]


def write(adoptions: Iterable[Adoption], changes: FileChanges) -> None:
    """Write every pegboard.toml before the clients that name it."""
    for adoption in adoptions:
        if adoption.plan.new:
            changes.write(adoption.target, adoption.text.encode(), before=adoption.before)
        for change in adoption.changes:
            mode, old = change.file.path.stat().st_mode & 0o777, change.file.text.encode()
            changes.create(change.backup, old, mode)
            changes.write(change.file.path, change.text.encode(), before=old, mode=mode)


def backups(path: Path) -> dict[int, Path]:
    """The backups of a file by number, the oldest first."""
    pattern = re.compile(re.escape(path.name + BACKUP) + r"(?:-(\d+))?")
    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    found = {int(match.group(1) or 1): each for each in beside if (match := pattern.fullmatch(each.name))}
    return dict(sorted(found.items()))


def next_backup(path: Path) -> Path:
    """The path of the next backup."""
    number = max(backups(path), default=0) + 1
    return path.with_name(path.name + BACKUP + (f"-{number}" if number > 1 else ""))
