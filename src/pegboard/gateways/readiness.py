"""Whether this process wants requests, and if not, why."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pegboard.errors import PegboardError
from pegboard.seams import Encoder

LOGGER = logging.getLogger(__name__)

RETRY_SECONDS = 5.0
ANY_TEXT = "Ready?"

Check = Callable[[], str]
"""What is amiss, in words for everybody to read; nothing, if nothing is."""


@dataclass(slots=True, kw_only=True)
class Readiness:
    """``needed`` has to be in order before requests come; without what is ``missed``, requests are served all the same:
    were a store that is down a reason to go, every process on it would go at once."""

    needed: list[Check] = field(default_factory=list)
    missed: list[Check] = field(default_factory=list)
    draining: bool = False

    def report(self) -> tuple[bool, dict[str, Any]]:
        """Whether requests may come, and that as JSON."""
        reasons = ["It is about to end."] if self.draining else _amiss(self.needed)
        status = "not ready" if reasons else "ready"
        return not reasons, {"status": status, "reasons": reasons, "degraded": _amiss(self.missed)}


class Warming:
    """Loads an encoder before the first request needs it. Once it has worked, its failures are requests' own."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._amiss = "The encoder is being loaded."

    def amiss(self) -> str:
        return self._amiss

    async def run(self) -> None:
        """Try until it works."""
        while self._amiss:
            try:
                await self._encoder.encode([ANY_TEXT])
                self._amiss = ""
            except PegboardError as error:
                LOGGER.error("Not ready: %s", error)
                self._amiss = "The encoder does not work."
                await asyncio.sleep(RETRY_SECONDS)


def _amiss(checks: list[Check]) -> list[str]:
    return [said for check in checks if (said := check())]
