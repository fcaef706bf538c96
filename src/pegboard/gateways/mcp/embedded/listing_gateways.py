"""The gateways of an embedded server: one for each distinct listing."""

from __future__ import annotations

import logging
from collections import OrderedDict
from dataclasses import replace
from typing import Any

from mcp.server.lowlevel import Server

from pegboard.cached_property import cached_property
from pegboard.call_charges import CallCharges
from pegboard.compose import Parts, build_routing, default_parts
from pegboard.errors import CatalogError
from pegboard.gateways.mcp.embedded.hooked_server import OneServer, ToolListing, introduced
from pegboard.gateways.mcp.gateway.gateway import Gateway
from pegboard.gateways.mcp.gateway.session_changes import SessionBook
from pegboard.protocols import VectorIndex
from pegboard.settings import Settings
from pegboard.settings.retrieval import LASTING
from pegboard.stores import MemorySessions

LOGGER = logging.getLogger(__name__)

MOST_GATEWAYS = 16
"""Distinct listings whose gateways are kept ready. There is one if every caller gets the same list."""


class ListingGateways:
    """A gateway for each distinct listing: callers with the same tools share one.

    All share the embeddings, so a changed listing embeds only its new tools. None shares an index on a server, since
    each listing of the server's tools would remove those of the others there: vectors are compared in memory instead.
    """

    def __init__(self, server: Server[Any], settings: Settings, parts: Parts | None) -> None:
        self._server = server
        self._settings = settings
        self._given = parts
        self._gateways: OrderedDict[str, Gateway] = OrderedDict()
        self._unreadable: str | None = None

    @property
    def latest(self) -> Gateway | None:
        """The gateway that was used last."""
        return next(reversed(self._gateways.values()), None)

    def of(self, listing: ToolListing, *, searched: bool = False) -> Gateway | None:
        """The gateway over these tools. None, logged once, if they cannot be read: the server then continues without
        it.

        Tools that are listed as a whole are embedded only if they are searched.
        """
        try:
            gateway = self._gateways.get(listing.fingerprint) or self._made(listing)
        except CatalogError as error:
            if self._unreadable != listing.fingerprint:
                LOGGER.warning("The tools of %r are listed unchanged: %s", self._server.name, error)
            self._unreadable = listing.fingerprint
            return None
        self._gateways[listing.fingerprint] = gateway
        self._gateways.move_to_end(listing.fingerprint)
        while len(self._gateways) > MOST_GATEWAYS:
            self._gateways.popitem(last=False)[1].close()
        if searched or not gateway.view.is_small:
            gateway.view.index()
        return gateway

    def disconnect(self, session: str) -> None:
        """The client of the session is gone."""
        for gateway in self._gateways.values():
            gateway.announcer.disconnect(session)
            gateway.likely.forget(session)

    def _made(self, listing: ToolListing) -> Gateway:
        server = introduced(self._server.name, self._server.version, self._server.instructions)
        catalog = listing.catalog(server)
        parts = self._parts
        if self._settings.index in LASTING:
            parts = replace(parts, index=_in_memory, fallback_index=_in_memory)
        board = build_routing(self._settings, catalog, parts=parts, patient=False, name=listing.fingerprint)
        return Gateway(
            self._settings,
            board,
            OneServer(catalog),
            events=self._parts.events,
            clock=self._parts.clock,
            book=self._book,
            charges=self._charges,
            observe=board.observe,
        )

    @cached_property
    def _parts(self) -> Parts:
        return default_parts(self._settings) if self._given is None else self._given

    @cached_property
    def _charges(self) -> CallCharges:
        return CallCharges(self._parts.spend, self._settings.spend, self._parts.clock)

    @cached_property
    def _book(self) -> SessionBook:
        """Sessions in memory: the server's connections do not outlive its process either."""
        return SessionBook(MemorySessions(self._parts.clock, ttl=self._settings.session_ttl))


def _in_memory(_board: str) -> VectorIndex | None:
    return None
