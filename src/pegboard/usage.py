"""Counts of calls, and which tools they suggest to keep always available (the lazy-loading PRD)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Container, Sequence

from pegboard.averages import with_servers
from pegboard.errors import PegboardError, StoreError
from pegboard.model import Outcome, ToolId
from pegboard.protocols import Statistics
from pegboard.write_batch import write_batch

LOGGER = logging.getLogger(__name__)

LEAST_CALLS = 5
"""Successful calls below which a tool does not count as often used."""
FLUSH_SECONDS = 5.0
MOST_WAITING = 50_000
"""Outcomes kept for an unreachable store; the newest are kept."""


class Usage:
    """Collects outcomes and writes them to the store in batches: a failing store costs no call.

    Outcomes that an unreachable store missed are written when it is back, and those of a write that was cancelled, as
    this process ends, with the last one. If it failed after it had stored a batch,
    that batch is counted twice: the averages tolerate that, but not the loss of an outage's worth of calls.
    """

    def __init__(self, store: Statistics, *others: Callable[[Outcome], None]) -> None:
        """``others`` are called with each outcome at once."""
        self._store = store
        self._others = others
        self._waiting: list[Outcome] = []
        self._writes: asyncio.Task[None] | None = None
        """The last write."""

    def observe(self, outcome: Outcome) -> None:
        """Counts at once for routing in this process, and for other processes once the store has it."""
        self._waiting.append(outcome)
        for tell in self._others:
            tell(outcome)

    async def run(self) -> None:
        """Write the collected outcomes every few seconds, until cancelled."""
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            try:
                await self.flush()
            except Exception:
                LOGGER.exception("Calls could not be counted")

    async def flush(self) -> None:
        """A write that has begun goes on if its caller is cancelled, as at the end of the process: whether the store
        took it could not be told then. The next one waits for it."""
        self._writes = asyncio.create_task(self._flushed(self._writes))
        await asyncio.shield(self._writes)

    async def _flushed(self, before: asyncio.Task[None] | None) -> None:
        if before is not None and not before.done():
            await asyncio.wait([before])
        outcomes = self._waiting[:]  # other threads may add more meanwhile
        del self._waiting[: len(outcomes)]
        if outcomes:
            try:
                refused = await write_batch(outcomes, self._write)
                if refused:
                    LOGGER.warning("%d calls could not be counted: the store refuses their names", len(refused))
            except StoreError:  # what was not written is tried again
                self._waiting = [*outcomes, *self._waiting][-MOST_WAITING:]
            except PegboardError as error:
                LOGGER.warning("Calls could not be counted: %s", error)

    async def _write(self, outcomes: Sequence[Outcome]) -> None:
        await self._store.observe(with_servers(outcomes))

    async def most_called(self, most: int, servers: Container[str]) -> list[ToolId]:
        """At most ``most`` tools of these servers, those with the most successful calls first, then by name."""
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
