"""`pegboard init --undo`: moves servers back to the clients, and keeps the clients' later edits."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pegboard.apps.cli.adopt import UNDONE, backups, numbered, raw_document
from pegboard.apps.cli.atomic_files import FileChanges
from pegboard.apps.cli.client_reader import is_read_only, read, rows
from pegboard.errors import ConfigError
from pegboard.settings.client_configs import load_document
from pegboard.settings.client_edits import edited, is_plain_rewrite
from pegboard.settings.client_files import FOLDER, Client
from pegboard.settings.client_import import (
    ClientFile,
    boards,
    definition,
    existing_servers,
    identity,
    may_sign_in,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptBackup:
    """A backup, its content, and the name by which it is kept once it is undone."""

    backup: Path
    content: bytes
    undone: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Restoration:
    """The new content of a client's file. ``spent`` is the backup that it equals and that is removed; else all are
    ``kept``, under names by which no later undo takes them for backups.

    ``put_back`` are the servers that return; ``superseded`` are those for which the client has a newer entry.
    """

    client: Client
    path: Path
    before: bytes
    after: bytes
    put_back: tuple[str, ...]
    superseded: tuple[str, ...]
    spent: Path | None
    kept: tuple[KeptBackup, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One place of servers in a file, as it is ``now`` and in backups, the oldest first."""

    now: ClientFile
    chain: tuple[tuple[Path, ClientFile], ...]

    @property
    def ours(self) -> set[str]:
        """The entries of Pegboard that `init` wrote: others were there before."""
        return self.now.own - self.chain[0][1].own


def restorations(home: Path, folder: Path, names: Sequence[str] = ()) -> tuple[list[Restoration], list[str], list[str]]:
    """Restorations of all files that have a backup and Pegboard's entry, notes on files that have only a backup, and
    what is wrong with those that cannot be restored because they, or their backups, cannot be read."""
    made: list[Restoration] = []
    notes: list[str] = []
    failures: list[str] = []
    by_file: dict[Path, dict[tuple[str, ...], Client]] = {}
    paths: dict[Path, Path] = {}
    for client, path in rows(home, folder, names):
        try:
            file = path.resolve() if path.exists() else path
            has_backups = bool(backups(path))
        except OSError as error:
            failures.append(_unread(error))
            continue
        by_file.setdefault(file, {}).setdefault(client.place, client)
        if has_backups:
            paths.setdefault(file, path)  # of links to one file, that beside which the backups are
    for file, path in paths.items():
        kept, of_path = list(backups(path).values()), list(by_file[file].values())
        try:
            now = [each for each in _parts(of_path, path, folder) if each.own]
            if not now:
                notes.append(f"{path} has no entry of Pegboard and is left unchanged. Its backup is {kept[-1]}.")
            elif is_read_only(path):
                notes.append(f"{path} is read-only and is left unchanged. Make it writable, and undo again.")
            else:
                made.append(_restoration([_Part(now=each, chain=_chain(each, kept)) for each in now], kept))
        except ConfigError as error:
            failures.append(f"Not restored: {error}")
        except OSError as error:
            failures.append(_unread(error))
    return made, notes, list(dict.fromkeys(failures))


def _unread(error: OSError) -> str:
    return f"Not restored: cannot read {str(error.filename)!r}: {error.strerror}."


def _parts(of_path: Sequence[Client], path: Path, folder: Path) -> list[ClientFile]:
    """Every place of servers in a file, of all projects."""
    parts = []
    for client in of_path:
        folders = _projects(client, path) if FOLDER in client.place and path.is_file() else [folder]
        parts += [read(client, path, client.place_in(each), each) for each in folders]
    return [each for each in parts if each]


def _projects(client: Client, path: Path) -> list[Path]:
    """The folders for which a user's file has a part."""
    found: Any = load_document(path)
    for key in client.place[: client.place.index(FOLDER)]:
        found = found.get(key) if isinstance(found, Mapping) else None
    return [Path(each) for each in found] if isinstance(found, Mapping) else []


def _chain(now: ClientFile, kept: Sequence[Path]) -> tuple[tuple[Path, ClientFile], ...]:
    """The backups since the place last had no entry of Pegboard, the oldest first; each move removed some servers."""
    chain: list[tuple[Path, ClientFile]] = []
    for backup in reversed(kept):
        file = read(now.client, now.path, now.place, now.folder, backup)
        if file is None or not file.entries:
            break
        chain.insert(0, (backup, file))
        if not file.own:
            break
    if not chain:
        raise ConfigError(f"{str(kept[-1])!r} contains no servers.", remedy=f"Correct {str(now.path)!r} by hand.")
    return tuple(chain)


def _restoration(parts: Sequence[_Part], kept: Sequence[Path]) -> Restoration:
    now = parts[0].now
    put_back: list[str] = []
    superseded: list[str] = []
    text = now.text
    for part in parts:
        moved = _moved(part)
        stay = {name: entry for name, entry in part.now.entries.items() if name not in part.ours}
        back = {name: entry for name, (entry, _) in moved.items() if name not in stay}
        origins = {name: moved[name][1] for name in back}
        text = edited(replace(part.now, text=text), part.ours, back, origins)
        put_back += back
        superseded += [name for name, (entry, _) in moved.items() if name in stay and entry != stay[name]]
    spent = _unchanged_since(parts)
    return Restoration(
        client=now.client,
        path=now.path,
        before=now.text.encode(),
        after=spent.read_bytes() if spent else text.encode(),
        put_back=tuple(put_back),
        superseded=tuple(superseded),
        spent=spent,
        kept=() if spent else _set_aside(now.path, kept),
    )


def _set_aside(path: Path, kept: Sequence[Path]) -> tuple[KeptBackup, ...]:
    """Where the backups of a file are kept once they are undone. Raises OSError for one that cannot be read."""
    first = max(backups(path, UNDONE), default=0) + 1
    return tuple(
        KeptBackup(backup=backup, content=backup.read_bytes(), undone=numbered(path, UNDONE, number))
        for number, backup in enumerate(kept, first)
    )


def _moved(part: _Part) -> dict[str, tuple[Any, ClientFile]]:
    """The servers that `init` took away, in the order of the oldest backup, each with the newest text of it."""
    known = _known(part.now)
    return {
        name: (entry, file)
        for _, file in part.chain
        for name, entry in file.entries.items()
        if name not in file.own and _moves(name, entry, part.now, known)
    }


def _unchanged_since(parts: Sequence[_Part]) -> Path | None:
    """The backup from which `init` made exactly the present text; None if somebody has edited the file since."""
    oldest = {part.chain[0][0] for part in parts}
    if len(oldest) != 1 or any(len(part.chain) != 1 for part in parts):
        return None
    now, text = parts[0].now, parts[0].chain[0][1].text
    try:
        for part in parts:
            _, before = part.chain[0]
            own = {name: entry for name, entry in part.now.entries.items() if name in part.ours}
            gone = [name for name in before.entries if name not in part.now.entries or name in own]
            text = edited(replace(before, text=text), gone, own, {})
    except ConfigError:
        return None
    rewritten = len(parts) == 1 and is_plain_rewrite(now, parts[0].chain[0][1]) and not _missing(parts[0])
    return oldest.pop() if text == now.text or rewritten else None


def _missing(part: _Part) -> list[str]:
    """Servers that would come back although `init` did not take them away: the user deleted them since."""
    moved = _moved(part)
    return [name for name in part.chain[0][1].entries if name not in part.now.entries and name not in moved]


def _moves(name: str, entry: Any, file: ClientFile, known: Collection[str] | None) -> bool:
    """Whether `init` would have moved this server. A server that `init` leaves and that is gone was deleted by the
    user.

    A remote server counts as moved if it is among Pegboard's servers, ``known`` by their identity. If these cannot be
    read, it is put back, so that nothing is lost.
    """
    try:
        made = definition(name, entry, file)
    except ConfigError:
        return False
    return not may_sign_in(made) or known is None or identity(made) in known


def _known(file: ClientFile) -> frozenset[str] | None:
    """Identities of the servers of every pegboard.toml that the file's entries name; None if one cannot be read."""
    try:
        found = [existing_servers(raw_document(Path(board)), Path(board)) for board in boards(file).values()]
    except ConfigError:
        return None
    return frozenset(identity(entry) for board in found for entry in board.values())


def put_back(restorations: Sequence[Restoration], changes: FileChanges) -> None:
    for each in restorations:
        changes.write(each.path, each.after, before=each.before, mode=each.path.stat().st_mode & 0o777)
        for kept in each.kept:
            changes.create(kept.undone, kept.content, kept.backup.stat().st_mode & 0o777)
            changes.remove(kept.backup)
        if each.spent:
            changes.remove(each.spent)
