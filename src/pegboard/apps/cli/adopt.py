"""Moves servers from the files of clients into pegboard.toml."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import tomli_w

from pegboard.apps.cli.atomic_files import FileChanges
from pegboard.errors import ConfigError
from pegboard.settings import read_file
from pegboard.settings.client_edits import BOM, edited
from pegboard.settings.client_files import OWN_NAME, own_file
from pegboard.settings.client_import import (
    ENTRY_NAME,
    ClientFile,
    JsonObject,
    Plan,
    boards,
    entry_for,
    entry_name,
    existing_servers,
    free_name,
    hiding,
    plan,
    started_board,
)

BACKUP = ".before-pegboard"
UNDONE = ".undone-pegboard"
"""The end of a backup's name after it was undone, where it is kept."""
HEADING = "# The MCP servers behind Pegboard. `pegboard doctor` checks them.\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientChange:
    """The change of a client's file whose servers ``gone`` become one ``entry`` called ``name``.

    The name is empty if the file has that entry already.
    """

    file: ClientFile
    entry: JsonObject
    name: str
    gone: tuple[str, ...]
    backup: Path

    @property
    def boards(self) -> dict[str, str]:
        """What the entries of Pegboard start afterwards."""
        before = {name: board for name, board in boards(self.file).items() if name not in self.gone}
        return before | ({self.name: self.entry_board} if self.name else {})

    @property
    def entry_board(self) -> str:
        return started_board(self.file.client.common(self.entry))

    def text(self, file: ClientFile) -> str:
        """The new text, made from that of ``file``."""
        return edited(file, self.gone, {self.name: self.entry} if self.name else {}, {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """The new content of one pegboard.toml and the changed clients that start it. ``before`` is None for a new file;
    ``existing`` are its servers' names until now."""

    target: Path
    before: bytes | None
    text: str
    plan: Plan
    existing: frozenset[str]
    changes: tuple[ClientChange, ...]

    @property
    def is_all_ours(self) -> bool:
        """Whether all servers of the file are among those that were just shown to the user."""
        return bool(self.plan.new) and not self.existing


def adoptions(
    files: Iterable[ClientFile], command: Sequence[str], to: Path | None, obstacle: Callable[[JsonObject], str]
) -> list[Adoption]:
    """What would be written where: a project's servers into the project, a user's into the user's own file, or all to
    one file. ``obstacle`` says why a remote server cannot be signed in to; empty if it can.

    Raises ConfigError for a pegboard.toml that cannot be read or extended.
    """
    groups: dict[Path, list[ClientFile]] = {}
    for file in files:
        groups.setdefault(to or _place(file), []).append(file)
    return [_adoption(target.absolute(), of_target, command, obstacle) for target, of_target in groups.items()]


def _place(file: ClientFile) -> Path:
    if file.client.scope == "local":  # the user's own, so outside the project, whose files others may read
        digest = hashlib.sha256(str(file.folder).encode()).hexdigest()[:8]
        return own_file().parent / "projects" / f"{file.folder.name}-{digest}.toml"
    return own_file() if file.client.scope == "user" else file.folder / OWN_NAME


def _adoption(
    target: Path, files: Sequence[ClientFile], command: Sequence[str], obstacle: Callable[[JsonObject], str]
) -> Adoption:
    if target.suffix != ".toml":
        raise ConfigError(f"{str(target)!r} does not end in .toml.", remedy="Choose a name that does.")
    document = raw_document(target) if target.exists() else {}
    before = target.read_bytes() if target.exists() else None
    existing = existing_servers(document, target)
    made = plan(existing, files, obstacle)
    changes: list[ClientChange] = []
    users: dict[str, dict[str, str]] = {}
    for file in sorted(files, key=lambda file: file.client.scope != "user"):
        change = _change(file, made, command, target, users.get(file.client.name, {}))
        changes += [change] if change else []
        if file.client.scope == "user":
            users[file.client.name] = change.boards if change else boards(file)
    return Adoption(
        target=target,
        before=before,
        text=_extended((before or HEADING.encode()).decode(), document, made.new, target),
        plan=made,
        existing=frozenset(existing),
        changes=tuple(sorted(changes, key=lambda change: files.index(change.file))),
    )


def raw_document(path: Path) -> dict[str, Any]:
    """A pegboard.toml without defaults. Raises ConfigError."""
    read_file(path)
    return tomllib.loads(path.read_text("utf-8-sig"))


def _extended(text: str, document: JsonObject, new: JsonObject, target: Path) -> str:
    """The text with new servers at the end; everything else, including comments and a BOM, stays unchanged."""
    if not new:
        return text
    gap = "" if not text or text.endswith("\n\n") else "\n" if text.endswith("\n") else "\n\n"
    extended = text + gap + tomli_w.dumps({"servers": dict(new)})
    expected = {**document, "servers": {**document.get("servers", {}), **new}}
    try:
        fits = tomllib.loads(extended.removeprefix(BOM)) == expected
    except tomllib.TOMLDecodeError:
        fits = False
    if not fits:
        raise ConfigError(
            f"{str(target)!r} has its servers in a form that cannot be extended.",
            remedy="Write them as tables, [servers.NAME], or choose another file with --to.",
        )
    return extended


def _change(
    file: ClientFile, made: Plan, command: Sequence[str], target: Path, users: Mapping[str, str]
) -> ClientChange | None:
    gone = tuple(moved.server for moved in made.moved if moved.file is file)
    if not gone:
        return None
    has = str(target) in boards(file).values()
    name = "" if has else free_name(entry_name(file, target, users), set(file.entries) - set(gone))
    return ClientChange(
        file=file,
        entry=entry_for(file.client, name or ENTRY_NAME, command, target),
        name=name,
        gone=gone,
        backup=next_backup(file.path),
    )


def hidden(files: Sequence[ClientFile], adoptions: Iterable[Adoption]) -> list[str]:
    """Notes on entries for different boards that have one name in two scopes of a client."""
    after = {id(change.file): change.boards for each in adoptions for change in each.changes}
    nearest = [file for scope in ("local", "project", "user") for file in files if file.client.scope == scope]
    pairs = [(near, far) for near, far in combinations(nearest, 2) if near.client.name == far.client.name]
    return [
        f"{far.path} and {near.path} both start Pegboard as {name!r}, and {near.client.name} starts only the "
        f"{near.client.scope}'s: rename one of the two."
        for near, far in pairs
        if near.client.scope != far.client.scope
        for name in hiding(after.get(id(far), boards(far)), after.get(id(near), boards(near)))
    ]


def write(adoptions: Sequence[Adoption], changes: FileChanges) -> None:
    """Write every pegboard.toml before the clients that name it."""
    for adoption in adoptions:
        if adoption.plan.new:
            changes.write(adoption.target, adoption.text.encode(), before=adoption.before)
    by_path: dict[Path, list[ClientChange]] = {}
    for change in (change for adoption in adoptions for change in adoption.changes):
        by_path.setdefault(change.file.path.resolve(), []).append(change)
    for path, of_path in by_path.items():
        mode, old = path.stat().st_mode & 0o777, of_path[0].file.text
        text = old
        for change in of_path:
            text = change.text(replace(change.file, text=text))
        changes.create(of_path[0].backup, old.encode(), mode)
        changes.write(path, text.encode(), before=old.encode(), mode=mode)


def backups(path: Path, ending: str = BACKUP) -> dict[int, Path]:
    """The backups of a file by number, the oldest first."""
    pattern = re.compile(re.escape(path.name + ending) + r"(?:-(\d+))?")
    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    found = {int(match.group(1) or 1): each for each in beside if (match := pattern.fullmatch(each.name))}
    return dict(sorted(found.items()))


def next_backup(path: Path) -> Path:
    """The path of the next backup."""
    return numbered(path, BACKUP, max(backups(path), default=0) + 1)


def numbered(path: Path, ending: str, number: int) -> Path:
    """The path of a backup with this number."""
    return path.with_name(path.name + ending + (f"-{number}" if number > 1 else ""))
