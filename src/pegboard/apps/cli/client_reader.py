"""Finds and reads the configuration files of MCP clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pegboard.errors import ConfigError
from pegboard.settings.client_configs import entries_at, parse_document
from pegboard.settings.client_edits import edited
from pegboard.settings.client_files import Client, clients, project_of
from pegboard.settings.client_import import ENTRY_NAME, ClientFile, entry_for, started_board


def client_files(home: Path, folder: Path, names: Sequence[str] = ()) -> tuple[list[ClientFile], list[str]]:
    """The files with servers of these clients (of all, if none is named), and notes on what was left out."""
    files: list[ClientFile] = []
    notes: list[str] = []
    seen: dict[tuple[Path, tuple[str, ...]], Path] = {}
    for client, path in rows(home, folder, names):
        place = client.place_in(folder)
        try:
            file = read(client, path, place, folder)
            if file and file.entries:
                if (first := seen.setdefault((path.resolve(), place), path)) != path:
                    raise ConfigError(f"{str(path)!r} is the same file as {str(first)!r}.")
                check(file)
        except ConfigError as error:
            notes.append(f"Left out: {error.message}")
        else:
            files += [file] if file and file.entries else []
            notes += _of_projects(file, folder) if file and client.scope == "user" else []
    return files, list(dict.fromkeys(notes))


def rows(home: Path, folder: Path, names: Sequence[str] = ()) -> list[tuple[Client, Path]]:
    """The rows of the table of clients with their paths, each place once. Raises ConfigError for an unknown client."""
    known = client_names()
    if unknown := sorted(set(names) - set(known)):
        raise ConfigError(f"There is no client {unknown[0]!r}.", remedy=f"Known are {', '.join(known)}.")
    wanted = [client for client in clients() if not names or client.name in names]
    by_place = {(client.path(home, folder), client.place): client for client in wanted}
    return [(client, path) for (path, _), client in by_place.items()]


def client_names() -> list[str]:
    return sorted({client.name for client in clients()})


def check(file: ClientFile) -> None:
    """Raises ConfigError if the file cannot be changed."""
    if is_read_only(file.path):
        raise ConfigError(f"{str(file.path)!r} is read-only.", remedy="Make it writable, and run the command again.")
    edited(file, tuple(file.entries), {ENTRY_NAME: entry_for(file.client, ENTRY_NAME, ["x"], file.path)}, {})


def is_read_only(path: Path) -> bool:
    """Whether nobody may write it: its owner, or the program that made it, protects it."""
    return not path.stat().st_mode & 0o222


def read(
    client: Client, path: Path, place: tuple[str, ...], folder: Path, backup: Path | None = None
) -> ClientFile | None:
    """A client's file, or its ``backup``, with no entries if it has no servers; None if there is no file.

    Raises ConfigError.
    """
    try:
        text = (backup or path).read_bytes().decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"Cannot read {str(backup or path)!r}: {error}.") from error
    document = parse_document(text.lstrip("\ufeff"), path)
    entries = entries_at(document, client, place, path)
    base = project_of(path) if client.scope == "user" else folder
    return ClientFile(client=client, path=path, place=place, folder=base, text=text, entries=entries)


def _of_projects(file: ClientFile, folder: Path) -> list[str]:
    """Claude Code keeps servers of single projects in its user file; only those of the current project move."""
    projects = parse_document(file.text.lstrip("\ufeff"), file.path).get("projects")
    found = projects.items() if isinstance(projects, Mapping) else ()
    others = {
        name: [each for each in about["mcpServers"].values() if not started_board(each)]
        for name, about in found
        if name != str(folder) and isinstance(about, Mapping) and isinstance(about.get("mcpServers"), Mapping)
    }
    return [
        f"Stays in {file.path}: {len(servers)} servers that are only for the project {name}."
        for name, servers in others.items()
        if servers
    ]
