"""Whether what is kept in a store was kept: a store that fails is said once, however often it is asked."""

from __future__ import annotations

import logging

from pegboard.errors import PegboardError, StoreError

LOGGER = logging.getLogger(__name__)


class Outage:
    """The times in which a store fails. ``what`` is what cannot be done meanwhile, as the beginning of a sentence.

    A StoreError is not said here: `stores.breaker` says it for all that is kept in that store.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._on = False

    def began(self, error: PegboardError) -> bool:
        """The store failed; whether it is the first time since it last worked."""
        first, self._on = not self._on, True
        if first and not isinstance(error, StoreError):
            LOGGER.warning("%s: %s", self._what, error)
        return first

    def ended(self) -> None:
        """The store did what was asked."""
        self._on = False
