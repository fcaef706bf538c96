"""The snapshot of a registry: its latest versions in one file, in the registry's own format.

The same servers always make the same bytes, one server a line, so that two snapshots can be compared by any tool.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pegboard import operating_system
from pegboard.errors import CatalogError, ConfigError, StoreError
from pegboard.registry.latest_versions import latest_versions
from pegboard.registry.registry_files import read_servers
from pegboard.registry.server_entries import ServerListing, listing

FILE = "registry.json"
"""Its name in the cache folder, unless the configuration names another."""
SHOWN_FAULTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The servers by name, and when the source was last read."""

    path: Path
    listings: tuple[ServerListing, ...]
    read_at: datetime

    def named(self, name: str) -> ServerListing:
        """Raises ConfigError with similar names for an unknown one."""
        wanted = name.casefold()
        for each in self.listings:
            if each.name.casefold() == wanted:
                return each
        near = [each.name for each in self.listings if wanted.rpartition("/")[2] in each.name.casefold()][:5]
        remedy = f"Similar names: {', '.join(near)}." if near else "`pegboard registry search` finds servers by words."
        raise ConfigError(f"The snapshot has no server {name!r}.", remedy=remedy)


@dataclass(slots=True)
class Gathered:
    """Collects the servers of a source. One that cannot be read is left out, and its fault is kept."""

    listings: list[ServerListing] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    invalid: int = 0

    def add(self, values: Iterable[Any]) -> None:
        for value in values:
            try:
                self.listings.append(listing(value))
            except CatalogError as error:
                self.invalid += 1
                if len(self.faults) < SHOWN_FAULTS:
                    self.faults.append(error.message)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncReport:
    """What a sync read and wrote. ``added``, ``changed`` and ``removed`` count servers against the snapshot before."""

    path: Path
    source: str
    servers: int
    added: int
    changed: int
    removed: int
    deprecated: int
    older: int
    deleted: int
    repeated: int
    invalid: int
    faults: tuple[str, ...]

    @property
    def is_unchanged(self) -> bool:
        return not (self.added or self.changed or self.removed)


def write_snapshot(path: Path, gathered: Gathered, source: str) -> SyncReport:
    """Replace the snapshot, or only renew its time if nothing changed. Raises CatalogError, and changes nothing, for a
    source without a single valid server."""
    if not gathered.listings:
        first = gathered.faults[0] if gathered.faults else "It has no servers."
        raise CatalogError(f"Nothing in {source!r} is a valid server. {first}", remedy="The snapshot is unchanged.")
    latest = latest_versions(gathered.listings)
    before = {each.name: each for each in _before(path)}
    after = {each.name: each for each in latest.listings}
    report = SyncReport(
        path=path,
        source=source,
        servers=len(after),
        added=len(after.keys() - before.keys()),
        changed=sum(before[name] != after[name] for name in after.keys() & before.keys()),
        removed=len(before.keys() - after.keys()),
        deprecated=sum(each.standing.status == "deprecated" for each in latest.listings),
        older=latest.older,
        deleted=latest.deleted,
        repeated=latest.repeated,
        invalid=gathered.invalid,
        faults=tuple(gathered.faults),
    )
    data = _written(latest.listings)
    if path.is_file() and path.read_bytes() == data:
        os.utime(path)
    else:
        _replace(path, data)
    return report


def read_snapshot(path: Path) -> Snapshot:
    """Raises ConfigError if there is none, CatalogError if it is broken."""
    if not path.is_file():
        raise ConfigError(
            f"There is no snapshot of a registry at {str(path)!r}.", remedy="`pegboard registry sync SOURCE` makes one."
        )
    read_at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    listings = tuple(listing(each) for each in read_servers(path))
    return Snapshot(path=path, listings=latest_versions(listings).listings, read_at=read_at)


def _before(path: Path) -> tuple[ServerListing, ...]:
    try:
        return read_snapshot(path).listings
    except (ConfigError, CatalogError):
        return ()  # none, or a broken one, which the sync replaces


def _written(listings: Iterable[ServerListing]) -> bytes:
    lines = [_line(each.as_json()) for each in listings]
    text = '{"servers":[\n' + ",\n".join(lines) + f'\n],"metadata":{{"count":{len(lines)}}}}}\n'
    return text.encode()


def _line(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def _replace(path: Path, data: bytes) -> None:
    """Whoever may read the file may read the new one; a link is kept. Raises StoreError."""
    temporary = ""
    try:
        path = path.resolve()
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        Path(temporary).chmod(operating_system.mode_in_place_of(path))
        operating_system.replace_file(Path(temporary), path)
    except OSError as error:
        with suppress(OSError):
            Path(temporary).unlink(missing_ok=True)
        raise StoreError(f"Cannot write {str(path)!r}: {error.strerror}.", remedy="Name another file.") from None
