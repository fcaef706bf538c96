"""Where indexes are built: those of boards with hundreds of tools one at a time, on a thread of their own, and those of
boards with thousands on another.

Each takes seconds. The threads that asyncio lends are few: with a large board on each, one of twenty tools would wait,
and so would names that are resolved and files that are read; and the event loop would be one of many that want the
interpreter.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

T = TypeVar("T")

MANY = 500
"""Tools whose indexes take longer than a moment."""
LARGE = 5_000
"""Tools whose indexes take seconds. No smaller board waits for them."""


async def on_index_thread(tools: int, work: Callable[[], T]) -> T:
    """What ``work`` returns, which is about so many tools; off the event loop (P25)."""
    if tools <= MANY:
        return await asyncio.to_thread(work)
    return await asyncio.get_running_loop().run_in_executor(_thread(os.getpid(), tools >= LARGE), work)


@lru_cache(maxsize=2)
def _thread(_pid: int, _large: bool) -> ThreadPoolExecutor:
    """A forked process has none of its parent's threads."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="pegboard-index")
