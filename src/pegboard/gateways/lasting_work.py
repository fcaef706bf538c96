"""Work that goes on in the background for as long as a gateway does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from pegboard.protocols import Clock

LOGGER = logging.getLogger(__name__)

RESTART_SECONDS = 2.0
"""Seconds before it begins again. The others take a process for dead that says nothing for ten."""
STEADY_SECONDS = 60.0
"""Seconds after which work counts as mended, so that its next failure is logged again."""


async def kept_up(work: Callable[[], Awaitable[None]], clock: Clock, failure: str) -> None:
    """Do work that lasts until it is cancelled; where it fails, begin it again after a pause.

    ``failure`` is what that prevents, for the log, which names the kind of the error but nothing that it says: that may
    be secret. An error that repeats is logged once. Work that is cancelled ends, though it fails on the way out.
    """
    logged: type[Exception] | None = None
    while True:
        began = clock.monotonic()
        try:
            await work()
            return
        except Exception as error:
            ends = _is_cancelled()
            if ends or type(error) is not logged or clock.monotonic() - began >= STEADY_SECONDS:
                LOGGER.error("%s (%s)%s", failure, type(error).__name__, "" if ends else ", which is tried again")
                LOGGER.debug("Where it failed", exc_info=True)
            if ends:
                raise asyncio.CancelledError from error
            logged = type(error)
        await asyncio.sleep(RESTART_SECONDS)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
