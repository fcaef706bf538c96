"""What is known of a server from earlier connections."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import anyio

from pegboard.errors import ConfigError
from pegboard.seams import Definitions, Listing
from pegboard.server_spec import ServerSpec

PATIENCE = 2.0
"""Seconds that ending may wait for the store."""

LOGGER = logging.getLogger(__name__)


class Remembered:
    """The last listing of one server. A store that is broken is logged and passed over: it is only a cache."""

    def __init__(self, store: Definitions | None, spec: ServerSpec, environment: Mapping[str, str]) -> None:
        self._store = store
        self._spec = spec
        self._environment = environment
        self._last: Listing | None = None

    async def get(self) -> Listing | None:
        key = self._key()
        if self._store is None or key is None:
            return None
        try:
            self._last = await self._store.get(key)
        except Exception:
            LOGGER.exception("What is known of server %s cannot be read", self._spec.name)
        return self._last

    async def put(self, listing: Listing) -> None:
        """Also where the gateway is ending: what a server listed once, it need not be started for again."""
        key = self._key()
        if self._store is None or key is None or listing == self._last:
            return
        try:
            with anyio.move_on_after(PATIENCE, shield=True):
                await self._store.put(key, listing)
                self._last = listing
        except Exception:
            LOGGER.exception("What is known of server %s cannot be kept", self._spec.name)

    def _key(self) -> str | None:
        """None for a configuration that cannot be used: connecting will say why."""
        try:
            return self._spec.expanded(self._environment).identity()
        except (ConfigError, OSError):
            return None
