"""A bounded memory of what owners use, in which nobody crowds out others."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
IDLE_SECONDS = 3_600.0
"""An owner that has put nothing for so long is taken for gone: no provider keeps prompts longer."""


class OwnerCache(Generic[K, V]):
    """At most ``most`` values. Where there are too many, an owner that is gone loses the value put longest ago, or else
    one of those with most values. ``now`` gives monotonic seconds.

    >>> from time import monotonic
    >>> cache = OwnerCache[str, int](3, monotonic)
    >>> for owner, key in [("ann", "a"), ("ben", "b"), ("ben", "c"), ("ben", "d")]:
    ...     cache.put(owner, key, 1)
    >>> [key for key in "abcd" if key in cache]
    ['a', 'c', 'd']
    """

    def __init__(self, most: int, now: Callable[[], float]) -> None:
        self._most = most
        self._now = now
        self._values: dict[K, tuple[str, V]] = {}
        self._keys: OrderedDict[str, OrderedDict[K, None]] = OrderedDict()
        """By owner, the one that has put none for the longest first."""
        self._put_at: dict[str, float] = {}
        self._with: dict[int, dict[str, None]] = {}
        """The owners with so many values."""
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
        self._keys.move_to_end(owner)
        self._put_at[owner] = self._now()
        count = len(keys)
        keys[key] = None
        keys.move_to_end(key)
        self._moved(owner, count, len(keys))
        if len(self._values) > self._most:
            self.remove(next(iter(self._keys[self._crowding()])))

    def remove(self, key: K) -> None:
        """Forget a value, if there is one."""
        found = self._values.pop(key, None)
        if found is None:
            return
        owner = found[0]
        keys = self._keys[owner]
        del keys[key]
        self._moved(owner, len(keys) + 1, len(keys))
        if not keys:
            del self._keys[owner], self._put_at[owner]

    def _crowding(self) -> str:
        """The owner that is to lose a value."""
        idle = next(iter(self._keys))
        is_gone = self._now() - self._put_at[idle] > IDLE_SECONDS
        return idle if is_gone else next(iter(self._with[self._largest]))

    def _moved(self, owner: str, before: int, now: int) -> None:
        if before:
            del self._with[before][owner]
            if not self._with[before]:
                del self._with[before]
        if now:
            self._with.setdefault(now, {})[owner] = None
        self._largest = max(self._largest, now)
        while self._largest and self._largest not in self._with:
            self._largest -= 1
