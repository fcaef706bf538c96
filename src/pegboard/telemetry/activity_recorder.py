"""Writes activity behind the requests: an event is only put aside when it happens."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice

from pegboard.activity_entries import ActivityEntry
from pegboard.errors import PegboardError
from pegboard.events import (
    ContentSuspected,
    DefinitionChanged,
    DefinitionSuspected,
    Event,
    RecallMeasured,
    ServerCrowds,
)
from pegboard.model_prices import NO_PRICES, PriceTable
from pegboard.protocols import Activity
from pegboard.telemetry.activity_book import MOST_OPEN, ActivityBook
from pegboard.write_batch import write_batch

LOGGER = logging.getLogger(__name__)

EVERY = 0.25
"""Seconds between two writes."""
BUSY_EVERY = 1.0
"""Seconds between two writes of `MANY` entries or more that nobody watches: a write takes as long as many entries."""
MANY = 20
MOST_WAITING = 50_000
"""Events, and entries that a failing store does not take; further ones are lost, and counted."""
MOST_NOTICES = 200
MOST_BEHIND = 2_000
"""Entries that a watcher may be behind; it is then told to read the list again."""
AT_ONCE = 1_000
"""Events, and entries, of one write: all that waits for a store that failed would hold the event loop for seconds."""
MOST_STORED = 2 * MOST_OPEN
"""Stored entries whose ids are remembered; then those are left out that change no more."""
IN_A_ROW = 100
"""Events of which entries are made before others have their turn: the event loop is never held for long."""
FINAL = ("request", "result")
"""Kinds of entries that do not change."""
NOTICES = (DefinitionChanged, DefinitionSuspected, ContentSuspected, ServerCrowds)
Watcher = asyncio.Queue[ActivityEntry | None]
"""Entries as they are stored; None if some were left out."""


@dataclass(frozen=True, slots=True)
class RecallSeen:
    """What an index found of the nearest tools in searches that were compared with all."""

    searches: int = 0
    wanted: int = 0
    found: int = 0

    def plus(self, event: RecallMeasured) -> RecallSeen:
        return RecallSeen(self.searches + 1, self.wanted + event.wanted, self.found + event.found)


class ActivityRecorder:
    """An EventSink that keeps activity in a store, within `running`. Pages call `flush` before they read the store.

    ``notices`` are the latest findings about tools and servers, the newest last; ``recall`` is what indexes for vectors
    have found since the start.
    """

    def __init__(self, prices: PriceTable = NO_PRICES) -> None:
        self.store: Activity
        self.notices: deque[Event] = deque(maxlen=MOST_NOTICES)
        self.recall: dict[str, RecallSeen] = {}
        self.lost = 0
        self._book = ActivityBook(prices)
        self._kinds = self._book.kinds
        self._events: deque[Event] = deque()
        self._entries: dict[str, ActivityEntry] = {}
        self._stored_ids: set[str] = set()
        self._watchers: set[Watcher] = set()
        self._writing = asyncio.Lock()
        self._written = 0
        self._failure: type[Exception] | None = None
        """The kind of the last failure, which is logged once; None as soon as nothing waits."""

    def emit(self, event: Event) -> None:
        """Safe from any thread."""
        if type(event) in self._kinds:
            if len(self._events) < MOST_WAITING:
                self._events.append(event)
            else:
                self.lost += 1
        elif isinstance(event, NOTICES):
            self.notices.append(event)
        elif isinstance(event, RecallMeasured):
            self.recall[event.index] = self.recall.get(event.index, RecallSeen()).plus(event)

    def amiss(self) -> str:
        """What is wrong with the store of activity; empty if it took what it was last given."""
        return "Activity cannot be kept, and is tried again." if self._failure else ""

    @property
    def pause(self) -> float:
        """Seconds between the last write and the next."""
        return EVERY if self._watchers or self._written < MANY else BUSY_EVERY

    @asynccontextmanager
    async def running(self, store: Activity) -> AsyncIterator[ActivityRecorder]:
        """Write every moment until the end of the block, and what is left then."""
        self.store = store
        task = asyncio.create_task(self._run())
        try:
            yield self
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await self.flush()
            while self._events and self._failure is None:
                await self.flush()

    async def flush(self) -> None:
        """Store what has happened until now. A store that fails gets it again.

        What happens meanwhile is left for the next time: a busy gateway would never come to an end, one small write
        after another, each of which takes as long as many entries."""
        async with self._writing:
            self._written, left = 0, len(self._events)
            while left or self._entries:
                many = min(AT_ONCE, left)
                await self._take(many)
                left -= many
                if not await self._stored():
                    return
                await asyncio.sleep(0)
            self._failure = None

    async def forget(self, conversation: str) -> int:
        """Remove the decisions of a conversation, by its mark, and what would bring them back; the number."""
        await self.flush()
        self._book.forget(conversation)
        return await self.store.forget(conversations=[conversation])

    @contextmanager
    def watched(self) -> Iterator[Watcher]:
        """The entries that are stored from now on."""
        watcher: Watcher = asyncio.Queue(MOST_BEHIND)
        self._watchers.add(watcher)
        try:
            yield watcher
        finally:
            self._watchers.discard(watcher)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self.pause)
            try:
                await self.flush()
            except Exception as error:
                if self._failed(error):
                    LOGGER.exception("Activity could not be written, and is tried again")

    def _failed(self, error: Exception) -> bool:
        """Whether it failed otherwise than the last time."""
        before, self._failure = self._failure, type(error)
        return before is not self._failure

    async def _take(self, many: int) -> None:
        """Make entries of the first events."""
        for number in range(1, many + 1):
            for entry in self._book.take(self._events.popleft()):
                self._entries[entry.id] = entry
            if number % IN_A_ROW == 0:
                await asyncio.sleep(0)
        while len(self._entries) > MOST_WAITING:
            del self._entries[next(iter(self._entries))]
            self.lost += 1

    async def _stored(self) -> bool:
        """Store the first entries; whether the store took them."""
        entries = list(islice(self._entries.values(), AT_ONCE))
        known = self._stored_ids.intersection(each.id for each in entries)
        self._written += len(entries)
        try:
            refused = await write_batch([*entries], partial(self.store.put, known=known))
        except PegboardError as error:
            if self._failed(error):
                LOGGER.warning("Activity cannot be kept, and is tried again: %s", error)
            return False
        self._failure = None
        for each in entries:
            del self._entries[each.id]
        if refused:
            LOGGER.warning("Entries of activity not kept, %d in all: the store refuses what they say", len(refused))
            self.lost += len(refused)
            lost = {each.id for each in refused}
            entries = [each for each in entries if each.id not in lost]
        self._remember(entries)
        for watcher in self._watchers:
            _tell(watcher, entries)
        return True

    def _remember(self, entries: list[ActivityEntry]) -> None:
        """Those that may change, or whose changes wait: if they are removed, their changes do not bring them back."""
        self._stored_ids.update(entry.id for entry in entries if entry.kind not in FINAL)
        if len(self._stored_ids) > MOST_STORED:
            self._stored_ids &= self._book.open_ids | self._entries.keys()


def _tell(watcher: Watcher, entries: list[ActivityEntry]) -> None:
    for entry in entries:
        if watcher.full():
            while not watcher.empty():
                watcher.get_nowait()
            watcher.put_nowait(None)
            return
        watcher.put_nowait(entry)
