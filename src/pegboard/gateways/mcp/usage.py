"""Counts of calls, written now and then, and what they say: which tools should always be at hand (seed 002)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Container

from pegboard.errors import PegboardError
from pegboard.model import Outcome, ToolId
from pegboard.seams import Statistics

LOGGER = logging.getLogger(__name__)

LEAST_CALLS = 5
"""Calls that succeeded, below which a tool is not called often used."""
FLUSH_SECONDS = 5.0


class Usage:
    """Collects outcomes and hands them to the store in batches. A store that fails loses counts, never calls."""

    def __init__(self, store: Statistics) -> None:
        self._store = store
        self._waiting: list[Outcome] = []

    def observe(self, outcome: Outcome) -> None:
        self._waiting.append(outcome)

    async def run(self) -> None:
        """Write what has been observed, every few seconds, until cancelled."""
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            await self.flush()

    async def flush(self) -> None:
        outcomes, self._waiting = self._waiting, []
        if outcomes:
            try:
                await self._store.observe(outcomes)
            except PegboardError as error:
                LOGGER.warning("Calls could not be counted: %s", error)

    async def most_called(self, most: int, servers: Container[str]) -> list[ToolId]:
        """At most so many tools of these servers: the most successful calls first, then by name."""
        if not most:
            return []
        try:
            known = await self._store.read()
        except PegboardError as error:
            LOGGER.warning("Counts of calls could not be read: %s", error)
            return []
        often = [
            tool for tool, statistics in known.items() if statistics.successes >= LEAST_CALLS and tool.server in servers
        ]
        return sorted(often, key=lambda tool: (-known[tool].successes, tool))[:most]
