"""Sessions, signing keys and replicas, kept as long as the process lives."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace

from pegboard.errors import SessionConflict
from pegboard.model import Replica, Session, SigningKey
from pegboard.protocols import Clock
from pegboard.stores.retention import ALIVE
from pegboard.stores.sessions import in_order


class MemorySessions:
    """The ``capacity`` sessions that were used last, each for ``ttl`` seconds after its last change."""

    def __init__(self, clock: Clock, *, ttl: float = float("inf"), capacity: int = 10_000) -> None:
        self._clock = clock
        self._ttl = ttl
        self._capacity = capacity
        self._sessions: OrderedDict[str, tuple[float, Session]] = OrderedDict()

    async def load(self, key: str) -> Session | None:
        expires, session = self._sessions.get(key, (0.0, None))
        if session is None or expires <= self._clock.time():
            return None
        self._sessions.move_to_end(key)
        return session

    async def save(self, session: Session) -> Session:
        stored = await self.load(session.id)
        if (stored.version if stored else 0) != session.version:
            raise SessionConflict
        saved = replace(session, version=session.version + 1)
        self._sessions[session.id] = (self._clock.time() + self._ttl, saved)
        self._sessions.move_to_end(session.id)
        while len(self._sessions) > self._capacity:
            self._sessions.popitem(last=False)
        return saved

    async def forget(self, key: str) -> None:
        self._sessions.pop(key, None)


class MemorySigningKeys:
    def __init__(self) -> None:
        self._keys: dict[str, SigningKey] = {}

    async def share(self, keys: Sequence[SigningKey], *, forget: float) -> Sequence[SigningKey]:
        known = {key.id: key for key in keys} | self._keys
        self._keys = {key.id: key for key in known.values() if key.made >= forget}
        return in_order(self._keys.values())


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
