"""A memory limit for request bodies in flight: one for all of them, and half of it per caller."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from pegboard.errors import PegboardError

CALLER = 2
"""One caller may use the total divided by this."""


class NoMemory(PegboardError):  # noqa: N818
    """The bodies in flight, or those of this caller, are at their limit; the body passes unread."""

    code = "no_memory"
    http_status = 503


class BodyMemory:
    """Allows at most ``most`` bytes of bodies at once. A share is released when its context ends."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._by: Counter[str] = Counter()

    @contextmanager
    def share(self, caller: str) -> Iterator[MemoryShare]:
        """The share of one request of this caller."""
        share = MemoryShare(self, caller)
        try:
            yield share
        finally:
            share.give_back()

    @property
    def held(self) -> int:
        """Bytes in use by all callers."""
        return self._by.total()

    def take(self, caller: str, size: int) -> None:
        """Raises NoMemory."""
        if self._by[caller] + size > self._most // CALLER:
            most = self._most // CALLER
            raise NoMemory(
                f"This caller's bodies in flight may take {most:,} bytes, and this request exceeds that.",
                remedy="Raise llm.most_held.",
            )
        if self.held + size > self._most:
            raise NoMemory(
                f"All bodies in flight may take {self._most:,} bytes, and this request exceeds that.",
                remedy="Raise llm.most_held.",
            )
        self._by[caller] += size

    def give_back(self, caller: str, size: int) -> None:
        self._by[caller] -= size
        if not self._by[caller]:
            del self._by[caller]


class MemoryShare:
    """The memory of one request."""

    def __init__(self, memory: BodyMemory, caller: str) -> None:
        self._memory = memory
        self._caller = caller
        self._size = 0

    def take(self, size: int) -> None:
        """Raises NoMemory; earlier memory stays allocated."""
        self._memory.take(self._caller, size)
        self._size += size

    def give_back(self) -> None:
        self._memory.give_back(self._caller, self._size)
        self._size = 0
