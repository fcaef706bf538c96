"""Which processes serve together: in memory, for those of one process."""

from __future__ import annotations

from collections.abc import Sequence

from pegboard.model import Replica
from pegboard.seams import Clock

ALIVE = 10.0
"""Seconds for which a process is taken to live after it said so."""


class MemoryReplicas:
    def __init__(self, clock: Clock, *, ttl: float = ALIVE) -> None:
        self._clock = clock
        self._ttl = ttl
        self._known: dict[str, tuple[float, Replica]] = {}

    async def beat(self, replica: Replica) -> Sequence[Replica]:
        now = self._clock.time()
        self._known[replica.id] = (now + self._ttl, replica)
        self._known = {key: (ends, each) for key, (ends, each) in self._known.items() if ends > now}
        return [self._known[key][1] for key in sorted(self._known)]

    async def leave(self, replica: Replica) -> None:
        self._known.pop(replica.id, None)
