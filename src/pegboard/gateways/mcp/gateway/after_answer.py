"""Work that no answer waits for: records of a call, and the scan of its result."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextvars import Context, copy_context

LOGGER = logging.getLogger(__name__)

PAUSE = 0.02
"""Seconds after an answer, in which it leaves this process and often the next request arrives."""
LONGEST_WAIT = 0.25
"""Seconds after which work is done although answers follow each other without a pause, with all that waits then."""
TICK = 0.001
"""Seconds by which a timer may be early: uvloop's count whole milliseconds. One that is set again for the rest of a
millisecond fires at once, again and again."""

Work = Callable[[], object]


class AfterAnswer:
    """Does work in the order it came, in a pause between answers, one piece in each turn of the event loop.

    Each piece runs in the context that it came from: what it tells belongs to its own call's trace. Work that raises is
    logged, and the rest goes on.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[float, Context, Work]] = []  # each user has one: an empty deque takes 760 bytes
        self._latest = 0.0
        self._timer: asyncio.Handle | None = None

    def __call__(self, work: Work) -> None:
        loop = asyncio.get_running_loop()
        self._latest = loop.time()
        self._waiting.append((self._latest, copy_context(), work))
        if self._timer is None:
            self._timer = loop.call_later(PAUSE, self._next)

    def flush(self) -> None:
        """Do now what is waiting."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting:
            self._do_first()

    def _next(self) -> None:
        """Begin with what waits, unless an answer has just been given and it can wait."""
        loop = asyncio.get_running_loop()
        due = min(self._latest + PAUSE, self._waiting[0][0] + LONGEST_WAIT)
        if loop.time() < due - TICK:
            self._timer = loop.call_at(due, self._next)
        else:
            self._go_on(len(self._waiting))

    def _go_on(self, pieces: int) -> None:
        """Do the first piece, then the others of ``pieces``, each in a turn of its own."""
        self._do_first()
        loop = asyncio.get_running_loop()
        if pieces > 1 and self._waiting:
            self._timer = loop.call_soon(self._go_on, pieces - 1)
        else:
            self._timer = loop.call_soon(self._next) if self._waiting else None

    def _do_first(self) -> None:
        _, context, work = self._waiting.pop(0)
        try:
            context.run(work)
        except Exception:
            LOGGER.exception("The record of a call failed")
