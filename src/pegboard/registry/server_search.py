"""A search over a snapshot by the ranking that finds tools, and what is suspicious in a server's texts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

from pegboard.board_search import found_tools
from pegboard.catalog import Catalog
from pegboard.model import Message, Part, Server, ServerName, Tool, ToolId, Turn
from pegboard.protocols import TokenCounter
from pegboard.registry.proposals import proposals
from pegboard.registry.server_entries import ServerListing
from pegboard.registry.snapshot import Snapshot
from pegboard.retrieval import Progress
from pegboard.routing_board import RoutingBoard
from pegboard.trust import ScanResult, scan

REGISTRY = ServerName("registry")
HOSTS = frozenset({"io", "com", "org", "net", "ai", "app", "dev", "co", "github"})
"""First parts of names that say nothing about a server."""
MOST_LOOKED_AT = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundServers:
    """Servers that match, best first, the deprecated ones last; if nothing seems to match, the nearest, with ``sure``
    false. ``suspicious`` counts better matches that are left out because their texts are suspicious."""

    listings: tuple[ServerListing, ...]
    sure: bool
    suspicious: int


def catalog_of(listings: Sequence[ServerListing], counter: TokenCounter | None = None) -> Catalog:
    """The servers as tools of one board: what the ranking and the scanner read."""
    tools = [as_tool(each, name) for name, each in by_short_name(listings).items()]
    return Catalog.build([(Server(name=REGISTRY), tools)], counter=counter)


def as_tool(listing: ServerListing, name: str) -> Tool:
    """A server as the definition of a tool, with its title and description."""
    server = listing.server
    title = f"{server.title}. " if server.title else ""
    return Tool(id=ToolId(REGISTRY, name), description=f"{title}{server.description}", title=server.title or None)


def by_short_name(listings: Sequence[ServerListing]) -> dict[str, ServerListing]:
    """Each by its short name, or by its whole one where another has that too, or is called so."""
    found: dict[str, ServerListing] = {}
    names = {each.name for each in listings}
    for each in listings:
        short = short_name(each.name)
        found[each.name if short in found or short in names else short] = each
    return found


def short_name(name: str) -> str:
    """A registry's name without the parts that many servers share.

    >>> short_name("io.github.domdomegg/airtable-mcp-server"), short_name("com.notion/mcp")
    ('domdomegg/airtable-mcp-server', 'notion/mcp')
    """
    namespace, _, last = name.rpartition("/")
    parts = namespace.split(".")
    kept = parts[2:] if parts[:2] == ["io", "github"] else parts[1:] if parts[0] in HOSTS else parts
    return f"{'.'.join(kept or parts)}/{last}"


def scan_listing(listing: ServerListing) -> ScanResult:
    """What is suspicious in the texts of a server that are shown, as in the definition of a tool."""
    tool = as_tool(listing, short_name(listing.name))
    reasons = [each.why_not for each in proposals(listing.server) if each.why_not]
    texts = [tool.description, listing.standing.status_message, listing.server.version, *reasons]
    return scan(replace(tool, description="\n".join(filter(None, texts))))


class ServerSearch:
    """Finds servers of one snapshot. ``board`` ranks `catalog_of` its listings."""

    def __init__(self, snapshot: Snapshot, board: RoutingBoard) -> None:
        self.snapshot = snapshot
        self._board = board
        self._listings = by_short_name(snapshot.listings)
        self._verdicts: dict[str, bool] = {}

    async def warm(self, progress: Progress | None = None) -> None:
        """Embed the servers now instead of with the first search."""
        await self._board.warm(progress)

    async def found(self, query: str, limit: int) -> FoundServers:
        """At most ``limit`` servers."""
        index = await self._board.search_index()
        result = await found_tools(self._board, index, _turn, query)
        best = [self._listings[each.tool.name] for each in result.tools or result.nearest][:MOST_LOOKED_AT]
        best.sort(key=lambda each: each.standing.status == "deprecated")
        shown, suspicious = await asyncio.to_thread(self._clean, best, limit)
        return FoundServers(listings=tuple(shown), sure=bool(result.tools), suspicious=suspicious)

    def _clean(self, best: Sequence[ServerListing], limit: int) -> tuple[list[ServerListing], int]:
        """The first ``limit`` without suspicious texts, and how many were passed over."""
        shown: list[ServerListing] = []
        suspicious = 0
        for each in best:
            if len(shown) == limit:
                break
            if self._is_suspicious(each):
                suspicious += 1
            else:
                shown.append(each)
        return shown, suspicious

    def _is_suspicious(self, listing: ServerListing) -> bool:
        if listing.name not in self._verdicts:
            self._verdicts[listing.name] = scan_listing(listing).suspicious
        return self._verdicts[listing.name]


def _turn(text: str) -> Turn:
    return Turn(id=uuid4().hex, messages=(Message(role="user", parts=(Part(text=text),)),))
