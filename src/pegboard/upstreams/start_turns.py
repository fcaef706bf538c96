"""Turns in which servers start whose tools are known already: nobody waits for them until one is called."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress

LONGEST_TURN = 5.0
"""Seconds after which the next server starts too, though this one is not ready yet."""


class StartTurns:
    """At most ``places`` of these servers start at once: by default half of the processor's cores.

    The other half is for a server that is called meanwhile: it starts at once, out of turn.
    """

    def __init__(self, places: int | None = None) -> None:
        self._places = asyncio.Semaphore(places or max(1, (os.cpu_count() or 1) // 2))

    async def take(self, wanted: asyncio.Event, settled: asyncio.Event, after: float) -> None:
        """After ``after`` seconds, set ``wanted`` once there is a place, and keep that until the server has
        ``settled``."""
        await asyncio.sleep(after)
        async with self._places:
            if wanted.is_set():
                return
            wanted.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(LONGEST_TURN):
                    await settled.wait()
