"""Definitions as they come in: their fingerprints, what the scanner makes of them, and their texts."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from pegboard.catalog import Catalog, fingerprint, server_fingerprint
from pegboard.model import Fingerprint, Server, Tool, ToolId
from pegboard.trust import Verdict, scan, scan_server

LONGEST_TEXT = 200_000
"""Characters of a definition up to which its text is kept for `pegboard pins diff`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A definition that a server lists, or what it says of itself. ``source`` is the object that it was made of."""

    source: object
    fingerprint: Fingerprint
    verdict: Verdict | None = None


class Sightings:
    """What was made of each definition, once: it stays the same object while its server lists nothing new."""

    def __init__(self) -> None:
        self._known: dict[ToolId, Sighting] = {}

    def of(self, tool: Tool) -> Sighting:
        known = self._known.get(tool.id)
        if known is None or known.source is not tool.definition:
            known = self._known[tool.id] = Sighting(source=tool.definition, fingerprint=fingerprint(tool))
        return known

    def of_server(self, server: Server) -> Sighting:
        """Of what a server says of itself, which has its place under `ToolId.whole`."""
        whole = ToolId(server.name, "")
        known = self._known.get(whole)
        said = server.title, server.instructions
        if known is None or known.source != said:
            known = self._known[whole] = Sighting(source=said, fingerprint=server_fingerprint(server))
        return known

    def look(self, catalog: Catalog) -> None:
        """Hash everything in a catalog. Thousands take a moment: run it on a thread (P25)."""
        for tool in catalog.tools:
            self.of(tool)

    def scan(self, catalog: Catalog, tools: Collection[ToolId]) -> None:
        """Have the scanner look at these, tools and servers as wholes. A thousand take a second: run it on a thread."""
        for tool in catalog.tools:
            if tool.id in tools and self.of(tool).verdict is None:
                self._known[tool.id] = replace(self.of(tool), verdict=scan(tool))
        for server in introduced(catalog):
            whole = ToolId(server.name, "")
            if whole in tools and self.of_server(server).verdict is None:
                self._known[whole] = replace(self.of_server(server), verdict=scan_server(server))

    def taken(self, catalog: Catalog) -> Mapping[ToolId, Sighting]:
        """By tools, and servers as wholes. Of what is not in the catalog nothing is remembered from now on."""
        taken = {tool.id: self.of(tool) for tool in catalog.tools}
        taken |= {ToolId(server.name, ""): self.of_server(server) for server in introduced(catalog)}
        self._known = dict(taken)
        return taken


def introduced(catalog: Catalog) -> Iterator[Server]:
    """Servers that have listed something: before that they have said nothing of themselves."""
    with_tools = {tool.server for tool in catalog.tools}
    return (server for server in catalog.servers.values() if server.name in with_tools)


def text_of(tool: ToolId, catalog: Catalog) -> str | None:
    """The definition as JSON, for people to read; None where it is too long to be kept."""
    server = catalog.servers[tool.server]
    said = catalog[tool].definition if tool.name else {"title": server.title, "instructions": server.instructions}
    text = json.dumps(said, sort_keys=True, default=str)
    return text if len(text) <= LONGEST_TEXT else None
