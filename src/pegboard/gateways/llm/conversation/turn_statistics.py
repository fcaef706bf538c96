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
from pegboard.gateways.lasting_work import kept_up
from pegboard.gateways.llm.selection.cache_aware_selection import RelevantTools
from pegboard.owner_cache import OwnerCache
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
    """The data of one key: whose it is, what the store has, what it has not been told, and when conversations began
    with which tools."""

    __slots__ = ("begun", "caller", "last", "new", "stored")

    def __init__(self, caller: str) -> None:
        self.caller = caller
        self.stored: Seen | None = None
        self.new = NOTHING
        self.last: float | None = None
        self.begun: OrderedDict[Places, float] = OrderedDict()


class TurnStatistics:
    """Sums up turns by key. With a store the sums are shared: replicas choose the same way once they have
    synchronized. Where there are too many keys, the caller with most of them loses its oldest: a system text that has
    the time makes a key of each request."""

    def __init__(self, clock: Clock, store: Lessons | None = None) -> None:
        self._clock = clock
        self._store = store
        self._known = OwnerCache[str, _Known](MOST_KEYS, clock.monotonic)
        self._keys = OwnerCache[tuple[str, int, int, bytes], str](MOST_KEYS, clock.monotonic)

    def key(self, owner: str, model: str, system: str, tools: bytes, caller: str = "") -> str:
        """The key of a request's traffic; ``tools`` is a hash of the definitions, ``caller`` the name of the gateway
        key; without one, the owner."""
        seen_as = (owner, hash(model), hash(system), tools)
        key = self._keys.get(seen_as)
        if key is None:
            said = [owner.encode(), model.encode(), tools, system.encode("utf-8", "surrogatepass")]
            key = hashlib.sha256(b"\0".join(said)).hexdigest()
            self._keys.put(caller or owner, seen_as, key)
        self._of(key, caller or owner)
        return key

    @property
    def keys(self) -> list[str]:
        """The known keys."""
        return [key for key, _ in self._known.items()]

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
        running = asyncio.create_task(kept_up(self._run, self._clock, "Traffic sums could not be synchronized"))
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
        known = dict(self._known.items())
        telling = {key: each.new for key, each in known.items() if each.new != NOTHING}
        asking = [key for key, each in known.items() if each.stored is None or key in telling]
        for key in telling:
            known[key].new = NOTHING
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
                untold = self._of(key, known[key].caller)
                untold.new = told.joined(untold.new)
        for key in asking:
            known[key].stored = found.get(key, NOTHING)

    def _of(self, key: str, caller: str = "") -> _Known:
        known = self._known.get(key) or _Known(caller)
        known.caller = known.caller or caller
        self._known.put(known.caller, key, known)
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
