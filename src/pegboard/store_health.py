"""Whether a store works: a failing store is logged once, however often it is used."""

from __future__ import annotations

import logging

from pegboard.errors import PegboardError, StoreError

LOGGER = logging.getLogger(__name__)


class StoreHealth:
    """Tracks a store's failures. ``what`` is what they prevent, as the beginning of a sentence for the log.

    A StoreError is not logged here: the store's circuit breaker logs it for everything in that store.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._on = False

    def began(self, error: PegboardError) -> bool:
        """The store failed. Returns whether this is the first failure since it last worked."""
        first, self._on = not self._on, True
        if first and not isinstance(error, StoreError):
            LOGGER.warning("%s: %s", self._what, error)
        return first

    @property
    def failing(self) -> bool:
        return self._on

    def ended(self) -> None:
        """The store worked."""
        self._on = False
