"""Many values, some at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

BATCH = 500
"""So many values a statement, script or command, that others are not kept waiting."""

T = TypeVar("T")


def batches(values: Iterable[T], size: int = BATCH) -> Iterator[list[T]]:
    """The values in their order; the last batch may be shorter.

    >>> list(batches("abc", 2))
    [['a', 'b'], ['c']]
    """
    left = iter(values)
    while some := list(islice(left, size)):
        yield some
