"""Loads the tools that a command works on, from files, live servers, or both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegboard.apps.cli.configs import Configured
from pegboard.catalog import Catalog
from pegboard.catalog.ingest import read_catalog
from pegboard.clock import SystemClock
from pegboard.errors import ConfigError, PegboardError
from pegboard.telemetry.event_log import LogEvents

if TYPE_CHECKING:
    from pegboard.upstreams import ServerStatus


PATIENCE = 1.0
"""Seconds beyond the connect timeout in which to find out why a server did not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedTools:
    """The loaded tools, their sources, and the status of each live server."""

    catalog: Catalog
    files: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()
    statuses: tuple[ServerStatus, ...] = ()

    @property
    def unreachable(self) -> dict[str, str]:
        """The reason for each server that did not answer."""
        return {each.name: each.reason or "No answer yet." for each in self.statuses if not each.available}

    def payload(self) -> dict[str, Any]:
        return {
            "sources": [str(path) for path in self.files],
            "notes": list(self.notes),
            "unreachable": [{"server": server, "reason": reason} for server, reason in self.unreachable.items()],
        }

    def lines(self) -> Iterator[str]:
        """The sources as lines of text."""
        yield from (f"From {path}" for path in self.files)
        yield from self.notes
        yield from (f"Not counted: server {server!r}. {reason}" for server, reason in self.unreachable.items())


async def load(configured: Configured, catalogs: Sequence[Path]) -> LoadedTools:
    """Tools of the files, then of the servers that answer. Raises CatalogError, or ConfigError for a name clash."""
    parts = [read_catalog(path) for path in catalogs]
    files, notes, settings = (*configured.files, *catalogs), configured.notes, configured.settings
    if not settings.enabled_servers:
        return LoadedTools(catalog=merged(parts), files=files, notes=notes)
    from pegboard.upstreams import Fleet
    from pegboard.upstreams.oauth.sign_ins import SignIns

    clock = SystemClock()
    async with Fleet(
        settings.enabled_servers,
        connect_timeout=settings.connect_timeout,
        call_timeout=settings.call_timeout,
        events=LogEvents(),
        clock=clock,
        sign_ins=SignIns(settings, clock),
    ) as fleet:
        await fleet.settled(settings.connect_timeout + PATIENCE)
        loaded = LoadedTools(catalog=fleet.catalog(), files=files, notes=notes, statuses=tuple(fleet.status()))
    answered = reduce(Catalog.without_server, loaded.unreachable, loaded.catalog)
    return replace(loaded, catalog=merged([*parts, answered]))


async def load_some(configured: Configured, catalogs: Sequence[Path], purpose: str) -> LoadedTools:
    """As `load`. Raises PegboardError if there are no tools; ``purpose`` says what they are needed for: "to scan"."""
    loaded = await load(configured, catalogs)
    if not len(loaded.catalog):
        raise PegboardError(
            " ".join([f"There are no tools {purpose}.", *loaded.lines()]),
            remedy="`pegboard doctor` says what is wrong with each server.",
        )
    return loaded


def merged(catalogs: Sequence[Catalog]) -> Catalog:
    """One catalog with all servers of these catalogs, in order."""
    if len(catalogs) == 1:
        return catalogs[0]
    names = [name for catalog in catalogs for name in catalog.servers]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"Server {name!r} occurs in two sources.", remedy="Rename it in one, or leave one out.")
    return Catalog.build(
        (server, catalog.of_server(name)) for catalog in catalogs for name, server in catalog.servers.items()
    )
