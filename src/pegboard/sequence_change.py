"""Where two sequences differ, found without a step of Python for each element, and values carried over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class SequenceChange:
    """Of two sequences, the first ``start`` elements are equal, and the last ``end``."""

    start: int
    end: int

    @classmethod
    def of(cls, before: tuple[T, ...], after: tuple[T, ...]) -> SequenceChange:
        """The change; tuples compare elements by identity first.

        >>> SequenceChange.of((1, 2, 3, 4), (1, 2, 7, 8, 4))
        SequenceChange(start=2, end=1)
        """
        start = _alike(before, after)
        if start == min(len(before), len(after)):
            return cls(start, 0)
        return cls(start, _alike(before[start:][::-1], after[start:][::-1]))

    def middle(self, elements: Sequence[T]) -> Sequence[T]:
        """What is between the equal ends."""
        return elements[self.start : len(elements) - self.end]


def _alike(one: tuple[T, ...], other: tuple[T, ...]) -> int:
    """The number of elements that both begin with."""
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle)
    return low


def carried_over(
    before: tuple[T, ...],
    values: tuple[V, ...],
    after: tuple[T, ...],
    made: Callable[[Sequence[T]], Sequence[V]],
) -> tuple[V, ...]:
    """One value for each element: those of elements that were there before, and ``made`` ones of the others.

    >>> carried_over(("a", "bb"), (1, 2), ("a", "ccc", "bb"), lambda new: [len(each) for each in new])
    (1, 3, 2)
    """
    change = SequenceChange.of(before, after)
    middle = change.middle(after)
    known = dict(zip(map(id, change.middle(before)), change.middle(values), strict=True))
    new = [each for each in middle if id(each) not in known]
    known |= zip(map(id, new), made(new), strict=True)
    return (
        *values[: change.start],
        *(known[id(each)] for each in middle),
        *values[len(values) - change.end :],
    )
