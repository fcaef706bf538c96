"""What is known about clients and their capabilities: the table `clients.toml`, and what the configuration adds."""

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
ALWAYS_LOAD = "anthropic/alwaysLoad"
"""The key by which Claude Code, the Agent SDK and claude.ai do not defer a tool; other clients ignore it."""
BRIDGE = re.compile(r"\s*\(via [^)]*\)\s*$")
"""The suffix that `mcp-remote` and similar bridges append to the name of their client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientKind:
    """Behaviour of a client that the protocol does not let it declare.

    ``native_search``: its own tool search is known to be on. ``always_load`` is a key of a tool's `_meta` that exempts
    the tool from that search. ``most_tools`` and ``longest_name`` (characters) are never exceeded, ``exposure`` is
    fixed by configuration. An unknown client does not list again, does not search, and has no limits.
    """

    name: str = UNKNOWN
    list_changed: bool = False
    native_search: bool = False
    always_load: str | None = ALWAYS_LOAD
    most_tools: int | None = None
    longest_name: int | None = None
    exposure: Exposure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRow:
    """A row of the table: a kind of client, the patterns of its names, and the sources of its entries."""

    kind: ClientKind
    matches: tuple[str, ...] = ()
    title: str = ""
    source: str = ""
    checked: str = ""

    def fits(self, name: str) -> bool:
        return any(fnmatchcase(name.casefold(), pattern.casefold()) for pattern in self.matches)


class TableEntry(ClientSettings):
    """A row as it is in the file."""

    title: str
    source: str
    checked: date


@cache
def known_clients() -> Mapping[str, ClientRow]:
    """The built-in table, in its order."""
    document = tomllib.loads(files(__package__).joinpath("clients.toml").read_text("utf-8"))
    entries = {name: TableEntry.model_validate(fields) for name, fields in document.items()}
    return MappingProxyType({name: _row(name, entry) for name, entry in entries.items()})


def client_rows(overrides: Mapping[str, ClientSettings] = NONE) -> tuple[ClientRow, ...]:
    """The configured rows in their order, then the built-in ones.

    Raises ConfigError for a new client without patterns.
    """
    known = known_clients()
    configured = [_configured(name, settings, known.get(name)) for name, settings in overrides.items()]
    return (*configured, *(row for name, row in known.items() if name not in overrides))


def client_kind(
    implementation_name: str, title: str | None = None, overrides: Mapping[str, ClientSettings] = NONE
) -> ClientKind:
    """The kind of a client, by the name in its `clientInfo`, else by its title.

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
            f"Client {name!r} is unknown and has no patterns.",
            remedy=f"Give clients.{name}.matches, or use one of: {', '.join(known_clients())}.",
        )
    return _changed(row or ClientRow(kind=ClientKind(name=name), title=name), settings)


def _changed(row: ClientRow, settings: ClientSettings) -> ClientRow:
    fields = settings.model_dump(exclude_none=True, include=ABILITIES)
    return replace(row, kind=replace(row.kind, **fields), matches=settings.matches or row.matches)
