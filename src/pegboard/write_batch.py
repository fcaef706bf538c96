"""Many values written to a store at once, of which it may refuse one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from pegboard.errors import ValueRefused

T = TypeVar("T")

MOST = 1_000
"""Values of one call: what waits after a long outage is more, and would hold the event loop for a second."""


async def write_batch(waiting: list[T], write: Callable[[list[T]], Awaitable[None]]) -> list[T]:
    """Write what is ``waiting`` with one call of ``write``, or with one for each `MOST` of it. Where the store refuses
    one value, write the others in smaller parts, until it alone is left out: no value keeps the others from being
    stored.

    Returns what was refused. Whatever was written or refused is no longer ``waiting``, also where ``write`` raises
    something else, which is raised.
    """
    refused: list[T] = []
    size = min(len(waiting), MOST)
    while waiting:
        some = waiting[:size]
        try:
            await write(some)
        except ValueRefused:
            if len(some) > 1:
                size = len(some) // 2
                continue
            refused += some
        else:
            size = min(2 * size, MOST)
        del waiting[: len(some)]
    return refused
