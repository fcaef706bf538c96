"""`pegboard init --undo`: what was moved goes back to the clients, whatever they changed since."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pegboard.apps.cli.adopt import backups, raw_document, read, rows, with_servers
from pegboard.apps.cli.together import Together
from pegboard.client_configs import Client
from pegboard.errors import ConfigError
from pegboard.importing import ClientFile, definition, existing_servers, identity, may_sign_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Restoration:
    """A client's file as it will be. ``spent`` is the backup that it then equals; else the backups stay.

    ``put_back`` are servers that return, ``superseded`` those that the client meanwhile has another of.
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
    """For every client's file that has a backup and our entry; and notes on those with a backup alone.

    Raises ConfigError where a file or a backup cannot be read: then nothing is changed.
    """
    made: list[Restoration] = []
    notes: list[str] = []
    for client, path in rows(home, folder, names):
        kept = list(backups(path).values())
        if not kept:
            continue
        now, _ = read(client, path)
        if now is None or not now.own:
            notes.append(f"{path} has no entry of Pegboard: left as it is. Its backup is {kept[-1]}.")
            continue
        made.append(_restoration(now, _chain(client, path, kept)))
    return made, notes


def _chain(client: Client, path: Path, kept: Sequence[Path]) -> list[ClientFile]:
    """The backups since the client last had no entry of ours, the oldest first: each took away some servers."""
    chain: list[ClientFile] = []
    for backup in reversed(kept):
        file, _ = read(client, backup)
        if file is None:
            break
        chain.insert(0, replace(file, path=backup))
        if not file.own:
            break
    if not chain:
        raise ConfigError(f"{str(kept[-1])!r} holds no servers.", remedy=f"Correct {str(path)!r} by hand.")
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
    """Whether `init` takes such a server away: one that stays and is gone was deleted by somebody else.

    One on the network is taken where it is among the servers of Pegboard, ``known`` by their identity; where these
    cannot be read it is put back, so that nothing is lost.
    """
    try:
        made = definition(name, entry, file)
    except ConfigError:
        return False
    return not may_sign_in(made) or known is None or identity(made) in known


def _known(file: ClientFile) -> frozenset[str] | None:
    """What identifies the servers of every pegboard.toml that the file's entries name; None where one is unreadable."""
    targets = {Path(file.entries[name]["args"][-1]) for name in file.own}
    try:
        boards = [existing_servers(raw_document(target), target) for target in targets]
    except ConfigError:
        return None
    return frozenset(identity(entry) for board in boards for entry in board.values())


def _in_order(servers: dict[str, Any], oldest: ClientFile) -> dict[str, Any]:
    first = [name for name in oldest.entries if name in servers]
    return {name: servers[name] for name in dict.fromkeys([*first, *servers])}


def put_back(restorations: Sequence[Restoration], changes: Together) -> None:
    for each in restorations:
        changes.write(each.path, each.after, before=each.before, mode=each.path.stat().st_mode & 0o777)
        if each.spent:
            changes.remove(each.spent)
