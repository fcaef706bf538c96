"""`pegboard init --undo`: moves servers back to the clients, and keeps the clients' later edits."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pegboard.apps.cli.adopt import backups, raw_document, read, rows, with_servers
from pegboard.apps.cli.atomic_files import FileChanges
from pegboard.errors import ConfigError
from pegboard.settings.client_configs import Client
from pegboard.settings.client_import import ClientFile, definition, existing_servers, identity, may_sign_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Restoration:
    """The new content of a client's file. ``spent`` is the backup that it equals and that is removed; else all backups
    are ``kept``.

    ``put_back`` are the servers that return; ``superseded`` are those for which the client has a newer entry.
    """

    client: Client
    path: Path
    before: bytes
    after: bytes
    put_back: tuple[str, ...]
    superseded: tuple[str, ...]
    spent: Path | None
    kept: tuple[Path, ...]


def restorations(home: Path, folder: Path, names: Sequence[str] = ()) -> tuple[list[Restoration], list[str]]:
    """Restorations of all files that have a backup and Pegboard's entry, and notes on files that have only a backup.

    Raises ConfigError if a file or a backup cannot be read; nothing is changed then.
    """
    made: list[Restoration] = []
    notes: list[str] = []
    for client, path in rows(home, folder, names):
        kept = list(backups(path).values())
        if not kept:
            continue
        now, _ = read(client, path)
        if now is None or not now.own:
            notes.append(f"{path} has no entry of Pegboard and is left unchanged. Its backup is {kept[-1]}.")
            continue
        made.append(_restoration(now, _chain(client, path, kept)))
    return made, notes


def _chain(client: Client, path: Path, kept: Sequence[Path]) -> list[ClientFile]:
    """The backups since the file last had no entry of Pegboard, the oldest first; each move removed some servers."""
    chain: list[ClientFile] = []
    for backup in reversed(kept):
        file, _ = read(client, backup)
        if file is None:
            break
        chain.insert(0, replace(file, path=backup))
        if not file.own:
            break
    if not chain:
        raise ConfigError(f"{str(kept[-1])!r} contains no servers.", remedy=f"Correct {str(path)!r} by hand.")
    return chain


def _restoration(now: ClientFile, chain: Sequence[ClientFile]) -> Restoration:
    known = _known(now)
    moved = {
        name: entry
        for backup in chain
        for name, entry in backup.entries.items()
        if name not in backup.own and _moves(name, entry, now, known)
    }
    stayed = {name: entry for name, entry in now.entries.items() if name not in now.own}
    servers = _in_order({**moved, **stayed}, chain[0])
    oldest = chain[0]
    same = len(chain) == 1 and servers == oldest.entries and with_servers(now, {}) == with_servers(oldest, {})
    text = oldest.text if same else with_servers(now, servers)
    return Restoration(
        client=now.client,
        path=now.path,
        before=now.text.encode(),
        after=text.encode(),
        put_back=tuple(name for name in servers if name not in stayed),
        superseded=tuple(name for name in moved if name in stayed and moved[name] != stayed[name]),
        spent=oldest.path if same else None,
        kept=() if same else tuple(backup.path for backup in chain),
    )


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
    targets = {Path(file.entries[name]["args"][-1]) for name in file.own}
    try:
        boards = [existing_servers(raw_document(target), target) for target in targets]
    except ConfigError:
        return None
    return frozenset(identity(entry) for board in boards for entry in board.values())


def _in_order(servers: dict[str, Any], oldest: ClientFile) -> dict[str, Any]:
    first = [name for name in oldest.entries if name in servers]
    return {name: servers[name] for name in dict.fromkeys([*first, *servers])}


def put_back(restorations: Sequence[Restoration], changes: FileChanges) -> None:
    for each in restorations:
        changes.write(each.path, each.after, before=each.before, mode=each.path.stat().st_mode & 0o777)
        if each.spent:
            changes.remove(each.spent)
