"""Many values written to a store at once, of which it may refuse one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from pegboard.errors import ValueRefused

T = TypeVar("T")


async def write_batch(values: Sequence[T], write: Callable[[Sequence[T]], Awaitable[None]]) -> list[T]:
    """Write ``values`` with one call of ``write``. Where the store refuses one of them, write them in halves, until it
    alone is left out: no value keeps the others from being stored.

    Returns what was refused. Raises what else ``write`` raises; some halves may have been written by then.
    """
    try:
        await write(values)
    except ValueRefused:
        if len(values) == 1:
            return [*values]
        half = len(values) // 2
        return [*await write_batch(values[:half], write), *await write_batch(values[half:], write)]
    return []
