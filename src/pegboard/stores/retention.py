"""What was not used for long is removed, now and then, by the gateways that run."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping

from pegboard.errors import PegboardError
from pegboard.records import Kind
from pegboard.seams import Archive, Clock
from pegboard.settings.state import RetentionSettings
from pegboard.stores.spend import LATE

LOGGER = logging.getLogger(__name__)

DAY = 86_400.0
EVERY = 3_600.0
"""Seconds between two rounds of one process, on average."""
FIRST = 300.0
"""Seconds after which the first one begins, at most."""

ForgetUnused = Callable[[float], Awaitable[int]]


class Retirement:
    """Applies the configured retention to a store, and to the definitions that are kept beside it."""

    def __init__(
        self,
        archive: Archive,
        definitions: ForgetUnused,
        retention: RetentionSettings,
        clock: Clock,
        *,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._archive = archive
        self._definitions = definitions
        self._retention = retention
        self._clock = clock
        self._uniform = uniform
        self._failed = False

    async def once(self) -> Mapping[str, int]:
        """How many of each kind were removed: what has expired, and what was not used for the configured days."""
        now, days = self._clock.time(), self._retention
        before: dict[Kind, float] = {"session": now, "hold": now - LATE}
        configured: dict[Kind, float] = {
            "meter": days.spend,
            "statistics": days.statistics,
            "lesson": days.lessons,
            "embedding": days.embeddings,
        }
        before |= {kind: now - kept * DAY for kind, kept in configured.items() if kept}
        removed: dict[str, int] = {kind: await self._archive.remove(kind, before=past) for kind, past in before.items()}
        if days.definitions:
            removed["definition"] = await self._definitions(now - days.definitions * DAY)
        return removed

    async def run(self) -> None:
        """Now and then until cancelled; many processes each at a time of its own. What fails is said once."""
        await asyncio.sleep(self._uniform(0, FIRST))
        while True:
            try:
                await self.once()
                self._failed = False
            except PegboardError as error:
                if not self._failed:
                    LOGGER.warning("What was not used for long could not be removed: %s", error)
                self._failed = True
            await asyncio.sleep(self._uniform(0.5, 1.5) * EVERY)
