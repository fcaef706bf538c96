"""The tools a command works on: from files, from live servers, or from both."""

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
from pegboard.errors import ConfigError
from pegboard.stores import LogEvents

if TYPE_CHECKING:
    from pegboard.upstreams import ServerStatus


PATIENCE = 1.0
"""Seconds beyond the time a server has to answer, in which it is found out why it did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The tools there are, where they come from, and how each live server is doing."""

    catalog: Catalog
    files: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()
    statuses: tuple[ServerStatus, ...] = ()

    @property
    def unreachable(self) -> dict[str, str]:
        """Why, by server."""
        return {each.name: each.reason or "No answer yet." for each in self.statuses if not each.available}

    def payload(self) -> dict[str, Any]:
        return {
            "sources": [str(path) for path in self.files],
            "notes": list(self.notes),
            "unreachable": [{"server": server, "reason": reason} for server, reason in self.unreachable.items()],
        }

    def lines(self) -> Iterator[str]:
        """The same for people."""
        yield from (f"From {path}" for path in self.files)
        yield from self.notes
        yield from (f"Not counted: server {server!r}. {reason}" for server, reason in self.unreachable.items())


async def load(configured: Configured, catalogs: Sequence[Path]) -> Loaded:
    """Tools of the files, then those of the servers that answer. Raises CatalogError, or ConfigError for a clash."""
    parts = [read_catalog(path) for path in catalogs]
    files, notes, settings = (*configured.files, *catalogs), configured.notes, configured.settings
    if not settings.enabled_servers:
        return Loaded(catalog=merged(parts), files=files, notes=notes)
    from pegboard.upstreams import Fleet

    async with Fleet(
        settings.enabled_servers,
        connect_timeout=settings.connect_timeout,
        call_timeout=settings.call_timeout,
        events=LogEvents(),
        clock=SystemClock(),
    ) as fleet:
        await fleet.settled(settings.connect_timeout + PATIENCE)
        loaded = Loaded(catalog=fleet.catalog(), files=files, notes=notes, statuses=tuple(fleet.status()))
    answered = reduce(Catalog.without_server, loaded.unreachable, loaded.catalog)
    return replace(loaded, catalog=merged([*parts, answered]))


def merged(catalogs: Sequence[Catalog]) -> Catalog:
    """All servers of all catalogs, in that order."""
    if len(catalogs) == 1:
        return catalogs[0]
    names = [name for catalog in catalogs for name in catalog.servers]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"Server {name!r} comes from two places.", remedy="Rename it in one, or leave one out.")
    return Catalog.build(
        (server, catalog.of_server(name)) for catalog in catalogs for name, server in catalog.servers.items()
    )
