"""Searches of many callers, who take turns: who has many under way delays nobody else."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pegboard.errors import PegboardError, QuotaReached
from pegboard.fair_queue import FairQueue
from pegboard.gateways.mcp.gateway.caller import Caller
from pegboard.settings import Settings
from pegboard.settings.retrieval import IndexKind

COMPUTED: frozenset[IndexKind] = frozenset({"exact", "compressed", "faiss"})
"""Indexes in this process."""
SENT_AT_ONCE = 32
"""Searches that are at work at once where they wait for a service."""


class SearchesWaiting(PegboardError):  # noqa: N818
    """A caller has too many searches that wait already."""

    code = "rate_limited"
    http_status = 429

    def __init__(self, most: int) -> None:
        super().__init__(f"{most:,} searches of this caller are waiting.", remedy="Try again when some are answered.")


class SearchQueue:
    """One for all boards of a host."""

    def __init__(self, settings: Settings) -> None:
        self._queue = FairQueue(searches_at_once(settings))

    @asynccontextmanager
    async def place(self, caller: Caller) -> AsyncIterator[None]:
        """A place to compute what tools match, waited for. Raises SearchesWaiting."""
        try:
            async with self._queue.place(caller.queue):
                yield
        except QuotaReached as error:
            raise SearchesWaiting(error.most) from None


def searches_at_once(settings: Settings) -> int:
    """As many as there are processors, and two at least, if searches only compute: of more, each would wait for all."""
    computes = settings.encoder.provider == "local" and settings.index in COMPUTED
    return max(2, os.cpu_count() or 1) if computes else SENT_AT_ONCE
