"""Definitions as listed, with their fingerprints, scan results and texts."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from pegboard.catalog import Catalog, fingerprint, server_fingerprint
from pegboard.model import Fingerprint, Server, Tool, ToolId
from pegboard.trust import ScanResult, scan, scan_server

LONGEST_TEXT = 200_000
"""Characters up to which a definition's text is kept for `pegboard pins diff`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedDefinition:
    """A listed definition, or a server's text about itself. ``source`` is the object it was computed from."""

    source: object
    fingerprint: Fingerprint
    verdict: ScanResult | None = None


class ScannedDefinitions:
    """Caches what was computed for each definition: its object stays the same until its server lists something new."""

    def __init__(self) -> None:
        self._taken: Mapping[ToolId, ScannedDefinition] = {}
        self._new: dict[ToolId, ScannedDefinition] = {}
        """What was computed since."""

    def of(self, tool: Tool) -> ScannedDefinition:
        known = self._known(tool.id)
        if known is None or known.source is not tool.definition:
            known = self._new[tool.id] = ScannedDefinition(source=tool.definition, fingerprint=fingerprint(tool))
        return known

    def of_server(self, server: Server) -> ScannedDefinition:
        """The record of a server's text about itself, which is keyed by `ToolId.whole`."""
        whole = ToolId(server.name, "")
        known = self._known(whole)
        said = server.title, server.instructions
        if known is None or known.source != said:
            known = self._new[whole] = ScannedDefinition(source=said, fingerprint=server_fingerprint(server))
        return known

    def look(self, catalog: Catalog) -> None:
        """Fingerprint everything in a catalog. Run it on a thread: thousands of tools take a while (P25)."""
        for tool in catalog.tools:
            self.of(tool)

    def scan(self, catalog: Catalog, tools: Collection[ToolId]) -> None:
        """Scan these tools, and servers as wholes. Run it on a thread: a thousand tools take a second."""
        for tool in catalog.tools:
            if tool.id in tools and self.of(tool).verdict is None:
                self._new[tool.id] = replace(self.of(tool), verdict=scan(tool))
        for server in introduced(catalog):
            whole = ToolId(server.name, "")
            if whole in tools and self.of_server(server).verdict is None:
                self._new[whole] = replace(self.of_server(server), verdict=scan_server(server))

    def taken(self, catalog: Catalog) -> Mapping[ToolId, ScannedDefinition]:
        """Records of all tools, and of servers as wholes. Forgets everything that is not in the catalog.

        Those of one catalog are in memory once while they are equal: it may be the catalog of many users.
        """
        taken = {tool.id: self.of(tool) for tool in catalog.tools}
        taken |= {ToolId(server.name, ""): self.of_server(server) for server in introduced(catalog)}
        if catalog.derived.get(ScannedDefinition) != taken:
            catalog.derived[ScannedDefinition] = taken
        self._taken, self._new = catalog.derived[ScannedDefinition], {}
        return self._taken

    def _known(self, tool: ToolId) -> ScannedDefinition | None:
        return self._new.get(tool) or self._taken.get(tool)


def introduced(catalog: Catalog) -> Iterator[Server]:
    """Servers that have listed tools; the others have not introduced themselves yet."""
    with_tools = {tool.server for tool in catalog.tools}
    return (server for server in catalog.servers.values() if server.name in with_tools)


def texts_of(tools: Iterable[ToolId], catalog: Catalog) -> dict[ToolId, str]:
    """The definitions that are not too long to be kept. Run it on a thread."""
    return {tool: text for tool in tools if (text := text_of(tool, catalog)) is not None}


def text_of(tool: ToolId, catalog: Catalog) -> str | None:
    """The definition as JSON for people to read; None if it is too long to be kept."""
    server = catalog.servers[tool.server]
    said = catalog[tool].definition if tool.name else {"title": server.title, "instructions": server.instructions}
    text = json.dumps(said, sort_keys=True, default=str)
    return text if len(text) <= LONGEST_TEXT else None
