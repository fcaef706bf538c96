"""What is known of a key's conversations: from this gateway, and from its replicas through the store.

A key combines owner, model, system text and set of tools; only its hash is kept.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from pegboard.errors import PegboardError
from pegboard.gateways.llm.selection.cache_aware_selection import RelevantTools
from pegboard.prompt_cache import CachePrices, Moment, Seen, Turned
from pegboard.protocols import Clock, Lessons

LOGGER = logging.getLogger(__name__)

FLUSH_SECONDS = 5.0
MOST_KEYS = 2_000
"""Keys kept in memory; the store knows more."""
MOST_BEGINNINGS = 64
"""Initial sets of tools that are remembered per key."""
NOTHING = Seen()
Places = frozenset[int]


class _Known:
    """The data of one key: what the store has, what it has not been told, and when conversations began with which
    tools."""

    __slots__ = ("begun", "last", "new", "stored")

    def __init__(self) -> None:
        self.stored: Seen | None = None
        self.new = NOTHING
        self.last: float | None = None
        self.begun: OrderedDict[Places, float] = OrderedDict()


class TurnStatistics:
    """Sums up turns by key. With a store the sums are shared: replicas choose the same way once they have
    synchronized."""

    def __init__(self, clock: Clock, store: Lessons | None = None) -> None:
        self._clock = clock
        self._store = store
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._keys: OrderedDict[tuple[str, int, int, bytes], str] = OrderedDict()

    def key(self, owner: str, model: str, system: str, tools: bytes) -> str:
        """The key of a request's traffic; ``tools`` is a hash of the definitions."""
        seen_as = (owner, hash(model), hash(system), tools)
        key = self._keys.get(seen_as)
        if key is None:
            said = [owner.encode(), model.encode(), tools, system.encode("utf-8", "surrogatepass")]
            key = self._keys[seen_as] = hashlib.sha256(b"\0".join(said)).hexdigest()
            while len(self._keys) > MOST_KEYS:
                self._keys.popitem(last=False)
        return key

    @property
    def keys(self) -> list[str]:
        """The known keys, least recently used first."""
        return list(self._known)

    def seen(self, key: str) -> Seen:
        """The sums of a key. With a store, only what the store has: all replicas use the same sums."""
        known = self._of(key)
        return known.new if self._store is None else known.stored or NOTHING

    def note(self, key: str, turn: Turned) -> None:
        known = self._of(key)
        known.new = known.new.after(turn)
        known.last = self._clock.monotonic()

    def neighbours(self, key: str, relevant: Places, prices: CachePrices) -> tuple[bool, bool]:
        """For a new conversation: whether another one had a request within the cache's lifetime, and whether another
        one began with the same relevant tools."""
        known, now = self._of(key), self._clock.monotonic()
        before = known.begun.get(relevant)
        known.begun[relevant] = now
        known.begun.move_to_end(relevant)
        while len(known.begun) > MOST_BEGINNINGS:
            known.begun.popitem(last=False)
        return _within(known.last, now, prices.ttl), _within(before, now, prices.ttl)

    @asynccontextmanager
    async def shared(self) -> AsyncIterator[TurnStatistics]:
        """Synchronize with the store every few seconds within this context, and once at its end."""
        running = asyncio.create_task(self._run())
        try:
            yield self
        finally:
            running.cancel()
            await asyncio.wait([running])
            await self.flush()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            await self.flush()

    async def flush(self) -> None:
        """Synchronize with the store; whatever fails is retried next time."""
        if self._store is None:
            return
        telling = {key: known.new for key, known in self._known.items() if known.new != NOTHING}
        asking = [key for key, known in self._known.items() if known.stored is None or key in telling]
        for key in telling:
            self._known[key].new = NOTHING
        try:
            if telling:
                await self._store.add(telling)
                telling = {}
            found = await self._store.read(asking) if asking else {}
        except PegboardError as error:
            LOGGER.debug("Traffic sums could not be synchronized: %s", error)
            return
        finally:
            for key, told in telling.items():
                self._of(key).new = told.joined(self._of(key).new)
        for key in asking:
            self._of(key).stored = found.get(key, NOTHING)

    def _of(self, key: str) -> _Known:
        known = self._known.setdefault(key, _Known())
        self._known.move_to_end(key)
        while len(self._known) > MOST_KEYS:
            self._known.popitem(last=False)
        return known


def turned(moment: Moment, before: RelevantTools, now: RelevantTools, *, first: bool, returned: bool) -> Turned:
    """One turn, from what was relevant before it and now. For a first turn, `neighbours` adds the rest."""
    wanted = frozenset(moment.relevant)
    return Turned(
        first=first,
        ahead=moment.ahead,
        wanted=_tokens(moment, wanted),
        added=_tokens(moment, wanted - before.any),
        called=_tokens(moment, now.called - before.called),
        changed=now.changed > before.changed,
        returned=returned,
    )


def _tokens(moment: Moment, places: Collection[int]) -> int:
    return sum(moment.tokens[place] for place in places)


def _within(then: float | None, now: float, seconds: float) -> bool:
    return then is not None and now - then < seconds
