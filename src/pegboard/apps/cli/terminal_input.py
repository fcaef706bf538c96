"""Lines that a person types or pastes while something else goes on."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

BYTES = 65_536


async def lines() -> AsyncIterator[str]:
    """Of stdin, until its end. They are read in a thread that the end of the process does not wait for."""
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[str | None]()

    def put(line: str | None) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(queue.put_nowait, line)

    threading.Thread(target=_read, args=(put,), daemon=True).start()
    while (line := await queue.get()) is not None:
        yield line


def _read(put: Callable[[str | None], None]) -> None:
    """By the system's call: a daemon thread that holds the lock of `sys.stdin` would break the end of the process."""
    left = b""
    with suppress(OSError, ValueError, AttributeError):  # there is no stdin
        while data := os.read(sys.stdin.fileno(), BYTES):
            *whole, left = (left + data).split(b"\n")
            for line in whole:
                put(line.decode(errors="replace"))
    if left:
        put(left.decode(errors="replace"))
    put(None)
