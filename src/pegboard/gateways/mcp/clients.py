"""Which client is asking, and what it can do: a table of data, `clients.toml`, and what configuration adds to it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from pegboard.errors import ConfigError
from pegboard.settings import ClientSettings, Exposure

UNKNOWN = "unknown"
NONE: Mapping[str, ClientSettings] = MappingProxyType({})
ABILITIES = {"list_changed", "native_search", "always_load", "most_tools", "longest_name", "exposure"}
BRIDGE = re.compile(r"\s*\(via [^)]*\)\s*$")
"""What `mcp-remote` and its like write behind the name of the client they stand before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientKind:
    """What a client does that the protocol does not let it say.

    ``native_search``: its own tool search is known to be on. ``always_load`` is the key of a tool's `_meta` that keeps
    the tool out of that search. ``most_tools`` and ``longest_name`` (characters) are never exceeded, ``exposure`` is
    fixed by configuration.
    An unknown client re-lists nothing, searches nothing and has no limits of its own.
    """

    name: str = UNKNOWN
    list_changed: bool = False
    native_search: bool = False
    always_load: str | None = None
    most_tools: int | None = None
    longest_name: int | None = None
    exposure: Exposure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRow:
    """A row of the table: a kind of client, the names it goes by (patterns), and where all that was found."""

    kind: ClientKind
    matches: tuple[str, ...] = ()
    title: str = ""
    source: str = ""
    checked: str = ""

    def fits(self, name: str) -> bool:
        return any(fnmatchcase(name.casefold(), pattern.casefold()) for pattern in self.matches)


class TableEntry(ClientSettings):
    """A row as the file has it."""

    title: str
    source: str
    checked: date


@cache
def known_clients() -> Mapping[str, ClientRow]:
    """The table that comes with Pegboard, in its order."""
    document = tomllib.loads(files(__package__).joinpath("clients.toml").read_text("utf-8"))
    entries = {name: TableEntry.model_validate(fields) for name, fields in document.items()}
    return MappingProxyType({name: _row(name, entry) for name, entry in entries.items()})


def client_rows(overrides: Mapping[str, ClientSettings] = NONE) -> tuple[ClientRow, ...]:
    """The configured rows, in their order, then the others of the table.

    Raises ConfigError for a new client that no pattern names.
    """
    known = known_clients()
    configured = [_configured(name, settings, known.get(name)) for name, settings in overrides.items()]
    return (*configured, *(row for name, row in known.items() if name not in overrides))


def client_kind(
    implementation_name: str, title: str | None = None, overrides: Mapping[str, ClientSettings] = NONE
) -> ClientKind:
    """The kind of the client that calls itself so in `clientInfo`: by its name, else by its title.

    >>> client_kind("claude-ai (via mcp-remote 0.1.37)").name
    'claude-desktop'
    >>> client_kind("something new").list_changed
    False
    """
    rows = client_rows(overrides)
    for said in filter(None, (implementation_name, title)):
        name = BRIDGE.sub("", said).strip()
        if row := next((row for row in rows if row.fits(name)), None):
            return row.kind
    return ClientKind()


def _row(name: str, entry: TableEntry) -> ClientRow:
    about = ClientRow(
        kind=ClientKind(name=name), title=entry.title, source=entry.source, checked=entry.checked.isoformat()
    )
    return _changed(about, entry)


def _configured(name: str, settings: ClientSettings, row: ClientRow | None) -> ClientRow:
    if row is None and not settings.matches:
        raise ConfigError(
            f"Client {name!r} is none that Pegboard knows, and has no patterns.",
            remedy=f"Give clients.{name}.matches, or use one of: {', '.join(known_clients())}.",
        )
    return _changed(row or ClientRow(kind=ClientKind(name=name), title=name), settings)


def _changed(row: ClientRow, settings: ClientSettings) -> ClientRow:
    fields = settings.model_dump(exclude_none=True, include=ABILITIES)
    return replace(row, kind=replace(row.kind, **fields), matches=settings.matches or row.matches)
