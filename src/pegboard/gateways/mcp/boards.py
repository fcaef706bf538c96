"""The gateways of a hooked server: one for each different listing that it gives."""

from __future__ import annotations

import logging
from collections import OrderedDict
from functools import cached_property
from typing import Any

from mcp.server.lowlevel import Server

from pegboard.compose import Parts, build, default_parts
from pegboard.errors import CatalogError
from pegboard.gateways.mcp.gateway import Gateway
from pegboard.gateways.mcp.in_process import Listing, OneServer, introduced
from pegboard.gateways.mcp.ledger import Ledger
from pegboard.gateways.mcp.sessions import SessionBook
from pegboard.settings import Settings
from pegboard.stores import MemorySessions

LOGGER = logging.getLogger(__name__)

MOST_BOARDS = 16
"""Different listings that are kept ready at once: it is one where every caller is listed the same."""


class Boards:
    """A gateway for each listing that the server gives: callers who may use the same tools share one.

    Vectors are shared by all, so that a changed listing embeds what is new in it and nothing else.
    """

    def __init__(self, server: Server[Any], settings: Settings, parts: Parts | None) -> None:
        self._server = server
        self._settings = settings
        self._given = parts
        self._gateways: OrderedDict[str, Gateway] = OrderedDict()
        self._unreadable: str | None = None

    @property
    def latest(self) -> Gateway | None:
        """The one that was used last."""
        return next(reversed(self._gateways.values()), None)

    def of(self, listing: Listing, *, searched: bool = False) -> Gateway | None:
        """The gateway over these tools; None, said once, where they cannot be read: the server goes on without it.

        Tools that are listed whole are embedded only where somebody searches them all the same.
        """
        try:
            gateway = self._gateways.get(listing.fingerprint) or self._made(listing)
        except CatalogError as error:
            if self._unreadable != listing.fingerprint:
                LOGGER.warning("The tools of %r stay as they are: %s", self._server.name, error)
            self._unreadable = listing.fingerprint
            return None
        self._gateways[listing.fingerprint] = gateway
        self._gateways.move_to_end(listing.fingerprint)
        while len(self._gateways) > MOST_BOARDS:
            self._gateways.popitem(last=False)[1].close()
        if searched or not gateway.view.is_small:
            gateway.view.index()
        return gateway

    def disconnect(self, session: str) -> None:
        """Its client has gone."""
        for gateway in self._gateways.values():
            gateway.announcer.disconnect(session)

    def _made(self, listing: Listing) -> Gateway:
        server = introduced(self._server.name, self._server.version, self._server.instructions)
        catalog = listing.catalog(server)
        board = build(self._settings, catalog, parts=self._parts, patient=False)
        return Gateway(
            self._settings,
            board,
            OneServer(catalog),
            events=self._parts.events,
            clock=self._parts.clock,
            book=self._book,
            ledger=self._ledger,
            observe=board.observe,
        )

    @cached_property
    def _parts(self) -> Parts:
        return default_parts(self._settings) if self._given is None else self._given

    @cached_property
    def _ledger(self) -> Ledger:
        return Ledger(self._parts.spend, self._settings.spend, self._parts.clock)

    @cached_property
    def _book(self) -> SessionBook:
        """In memory: the server's connections do not outlive its process either."""
        return SessionBook(MemorySessions(self._parts.clock, ttl=self._settings.session_ttl))
