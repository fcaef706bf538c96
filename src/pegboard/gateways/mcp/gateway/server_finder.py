"""`find_server`: servers of the registry's snapshot that could do what no tool here does. It only proposes entries."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pegboard.catalog import compact_json
from pegboard.compose import Parts
from pegboard.compose.registry_board import server_search
from pegboard.model import JsonObject
from pegboard.protocols import TokenCounter
from pegboard.registry.proposals import Proposal, configured_as, entry_name, proposals
from pegboard.registry.server_entries import ServerListing
from pegboard.registry.server_search import FoundServers, ServerSearch
from pegboard.registry.snapshot import read_snapshot
from pegboard.settings import Settings
from pegboard.settings.server_spec import ServerSpec

Result = dict[str, Any]

DEFAULT_LIMIT, MOST_SERVERS = 3, 10
SHORT, SHORTER = 300, 100
"""Characters of a description and of a title."""
PROPOSED = (
    "These are proposals from a registry; nothing was installed, and nobody checked their code. Show the user what "
    "fits, with its entry: only the user adds it to pegboard.toml. Never add, install or start a server unasked. One "
    "with `configured_as` is there already, under that name: search its tools instead."
)
NOTHING = "No server of the registry's snapshot seems to do that. The nearest may not help."
TOO_LONG = "`pegboard registry show {name}` prints its entry."


class ServerFinder:
    """Answers `find_server` from the configured snapshot, which is read with the first search and again once it has
    changed. While its servers are being embedded, words rank them."""

    def __init__(self, settings: Callable[[], Settings], parts: Parts, counter: TokenCounter) -> None:
        self._settings = settings
        self._parts = parts
        self._counter = counter
        self._search: tuple[object, ServerSearch] | None = None
        self._loading = asyncio.Lock()

    async def answer(self, arguments: JsonObject, may_see: Callable[[str], bool]) -> Result:
        """The servers that match, as JSON for a model, within the configured tokens. Of those that are configured
        already, only the ones that the caller ``may_see`` are said to be.

        Raises ConfigError if there is no snapshot, CatalogError if it is broken.
        """
        settings = self._settings()
        search = await self._current(settings)
        found = await search.found(arguments["query"], arguments.get("limit", DEFAULT_LIMIT))
        read = search.snapshot.read_at.date().isoformat()
        own = {name: spec for name, spec in settings.enabled_servers.items() if may_see(name)}
        return await asyncio.to_thread(answer, found, read, own, settings.registry.tokens, self._counter)

    async def _current(self, settings: Settings) -> ServerSearch:
        path = settings.registry.snapshot
        if path is None:
            raise ValueError("find_server is called without a snapshot")
        async with self._loading:
            stamp = await asyncio.to_thread(lambda: (path, path.stat().st_mtime_ns if path.is_file() else None))
            if self._search is None or self._search[0] != stamp:
                snapshot = await asyncio.to_thread(read_snapshot, path)
                made = await asyncio.to_thread(server_search, settings, snapshot, self._parts, patient=False)
                self._search = stamp, made
            return self._search[1]


def answer(found: FoundServers, read: str, own: Mapping[str, ServerSpec], tokens: int, counter: TokenCounter) -> Result:
    """Servers in order as long as they fit into ``tokens``; the entry of one that does not fit is left to a command,
    and one that is among the ``own`` needs none."""
    rest: Result = {"how": PROPOSED, "snapshot": read}
    rest |= {} if found.sure else {"why": NOTHING}
    rest |= {"suspicious_left_out": found.suspicious} if found.suspicious else {}
    servers: list[Result] = []
    left = tokens - _count(rest, counter)
    for listing in found.listings:
        for shown in _forms(listing, configured_as(listing.server, own)):
            if (size := _count(shown, counter)) <= left:
                servers.append(shown)
                left -= size
                break
    fewer = len(found.listings) - len(servers)
    return {"servers": servers} | rest | ({"too_long_left_out": fewer} if fewer else {})


def _count(value: Result, counter: TokenCounter) -> int:
    return counter.count([compact_json(value)])[0]


def _forms(listing: ServerListing, names: Sequence[str]) -> Sequence[Result]:
    """A server with its entry, and without it; one that is configured, as ``names``, has none."""
    server, standing = listing.server, listing.standing
    ways = proposals(server)
    about: Result = {"name": server.name, "version": _short(server.version, SHORTER), "status": standing.status}
    about |= {"status_message": _short(standing.status_message, SHORT)} if standing.status_message else {}
    about |= {"title": _short(server.title, SHORTER)} if server.title else {}
    about |= {"description": _short(server.description, SHORT)}
    about |= {"kinds": list(dict.fromkeys(each.kind for each in ways))}
    if names:
        return [about | {"configured_as": list(names)}]
    if not ways:
        return [about | {"no_entry": "the registry says neither an address nor a package"}]
    best = ways[0]
    if best.spec is None:
        return [about | {"no_entry": _short(best.why_not, SHORT)}]
    about |= {"needs": _needs(best)} if best.needs else {}
    about |= {"notes": list(best.notes)} if best.notes else {}
    return [
        about | {"entry": best.toml(entry_name(server.name))},
        about | {"no_entry": TOO_LONG.format(name=server.name)},
    ]


def _needs(way: Proposal) -> list[Result]:
    """Names alone, never values."""
    return [
        {"name": need.name} | ({"secret": True} if need.secret else {}) | ({} if need.required else {"optional": True})
        for need in way.needs
    ]


def _short(text: str, most: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[:most]}…"
