"""Many values written to a store at once, of which it may refuse one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from pegboard.errors import ValueRefused

T = TypeVar("T")


async def write_batch(waiting: list[T], write: Callable[[list[T]], Awaitable[None]]) -> list[T]:
    """Write what is ``waiting`` with one call of ``write``. Where the store refuses one value, write the others in
    smaller parts, until it alone is left out: no value keeps the others from being stored.

    Returns what was refused. Whatever was written or refused is no longer ``waiting``, also where ``write`` raises
    something else, which is raised.
    """
    refused: list[T] = []
    size = len(waiting)
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
            size *= 2
        del waiting[: len(some)]
    return refused
