"""A bounded memory of what owners use, in which nobody crowds out others."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class OwnerCache(Generic[K, V]):
    """At most ``most`` values. Where there are too many, the owner with most of them loses the one put longest ago; of
    several with as many, the one that has put none for the longest.

    >>> cache = OwnerCache[str, int](3)
    >>> for owner, key in [("ann", "a"), ("ben", "b"), ("ben", "c"), ("ben", "d")]:
    ...     cache.put(owner, key, 1)
    >>> [key for key in "abcd" if key in cache]
    ['a', 'c', 'd']
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: dict[K, tuple[str, V]] = {}
        self._keys: dict[str, OrderedDict[K, None]] = {}
        self._with: dict[int, OrderedDict[str, None]] = {}
        """The owners with so many values, the one that has put none for the longest first."""
        self._largest = 0

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def items(self) -> Iterator[tuple[K, V]]:
        """Keys with their values, in no order."""
        return ((key, value) for key, (_, value) in self._values.items())

    def get(self, key: K) -> V | None:
        found = self._values.get(key)
        return None if found is None else found[1]

    def put(self, owner: str, key: K, value: V) -> None:
        """Keep a value, as the latest of its owner, and forget another if there are too many."""
        before = self._values.get(key)
        if before is not None and before[0] != owner:
            self.remove(key)
        self._values[key] = owner, value
        keys = self._keys.setdefault(owner, OrderedDict())
        count = len(keys)
        keys[key] = None
        keys.move_to_end(key)
        self._moved(owner, count, len(keys))
        if len(self._values) > self._most:
            self.remove(next(iter(self._keys[next(iter(self._with[self._largest]))])))

    def remove(self, key: K) -> None:
        """Forget a value, if there is one."""
        found = self._values.pop(key, None)
        if found is None:
            return
        keys = self._keys[found[0]]
        del keys[key]
        self._moved(found[0], len(keys) + 1, len(keys))
        if not keys:
            del self._keys[found[0]]

    def _moved(self, owner: str, before: int, now: int) -> None:
        if before:
            del self._with[before][owner]
            if not self._with[before]:
                del self._with[before]
        if now:
            self._with.setdefault(now, OrderedDict())[owner] = None
        self._largest = max(self._largest, now)
        while self._largest and self._largest not in self._with:
            self._largest -= 1
