"""The audit log of one process, in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from pegboard.audit_entries import AuditEntry, ChainEnds, Link, sealed
from pegboard.stores.audit_chain import removable


class MemoryAudit:
    def __init__(self, *, key: bytes = b"") -> None:
        self._key = key
        self._lines: list[bytes] = []
        self._ends = ChainEnds()

    async def append(self, entries: Sequence[AuditEntry]) -> None:
        lines, last = sealed(entries, self._ends.last, self._key)
        self._lines += lines
        self._ends = ChainEnds(last=last, removed=self._ends.removed)

    async def read(self) -> AsyncIterator[bytes]:
        for line in tuple(self._lines):
            yield line

    async def ends(self) -> str:
        return self._ends.text(self._key) if self._ends.last != Link() else ""

    async def remove(self, before: float) -> int:
        old = removable(self._lines, before)
        if old:
            self._ends = ChainEnds(last=self._ends.last, removed=old[-1])
            del self._lines[: len(old)]
        return len(old)
