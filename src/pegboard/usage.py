"""Counts of calls, written now and then, and what they say: which tools should always be at hand (seed 002)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Container

from pegboard.averages import with_servers
from pegboard.errors import PegboardError, StoreError
from pegboard.model import Outcome, ToolId
from pegboard.seams import Statistics

LOGGER = logging.getLogger(__name__)

LEAST_CALLS = 5
"""Calls that succeeded, below which a tool is not called often used."""
FLUSH_SECONDS = 5.0
MOST_WAITING = 50_000
"""Outcomes that are kept for a store that cannot be reached: the newest."""


class Usage:
    """Collects outcomes and hands them to the store in batches: a store that fails costs no call.

    What a store that cannot be reached was not told is told when it is back. Where it failed after it had taken a
    batch in, that batch is counted twice: averages can bear it, and losing an outage's worth of calls they could not.
    """

    def __init__(self, store: Statistics, *others: Callable[[Outcome], None]) -> None:
        """``others`` are told of each outcome at once."""
        self._store = store
        self._others = others
        self._waiting: list[Outcome] = []

    def observe(self, outcome: Outcome) -> None:
        """It counts for this process's own routing at once, and for everybody's when the store has it."""
        self._waiting.append(outcome)
        for tell in self._others:
            tell(outcome)

    async def run(self) -> None:
        """Write what has been observed, every few seconds, until cancelled."""
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            await self.flush()

    async def flush(self) -> None:
        outcomes = self._waiting[:]  # others may be added meanwhile, by other threads too
        del self._waiting[: len(outcomes)]
        if outcomes:
            try:
                await self._store.observe(with_servers(outcomes))
            except StoreError:
                self._waiting = [*outcomes, *self._waiting][-MOST_WAITING:]
            except PegboardError as error:
                LOGGER.warning("Calls could not be counted: %s", error)

    async def most_called(self, most: int, servers: Container[str]) -> list[ToolId]:
        """At most so many tools of these servers: the most successful calls first, then by name."""
        if not most:
            return []
        try:
            known = await self._store.read()
        except StoreError:
            return []
        except PegboardError as error:
            LOGGER.warning("Counts of calls could not be read: %s", error)
            return []
        often = [
            tool
            for tool, statistics in known.items()
            if tool.name and statistics.successes >= LEAST_CALLS and tool.server in servers
        ]
        return sorted(often, key=lambda tool: (-known[tool].successes, tool))[:most]
