"""The latest activity, in the memory of one process."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from heapq import nlargest
from operator import attrgetter
from typing import TypeVar

from pegboard.activity_entries import (
    ActivityEntry,
    ActivityGroup,
    ActivityQuery,
    ActivityTotals,
    Grouping,
    summed,
    totals_of,
)

MANY = 1_000
"""Entries that take so long that other requests would notice."""
PLACE = attrgetter("at", "id")
Entries = Sequence[ActivityEntry]
T = TypeVar("T")


class MemoryActivity:
    """The last ``most`` entries."""

    def __init__(self, most: int = 10_000) -> None:
        self._most = most
        self._entries: OrderedDict[str, ActivityEntry] = OrderedDict()

    async def put(self, entries: Sequence[ActivityEntry], *, known: Collection[str] = ()) -> None:
        for entry in entries:
            if entry.id in self._entries or entry.id not in known:
                self._entries[entry.id] = entry
        while len(self._entries) > self._most:
            self._entries.popitem(last=False)

    async def find(self, query: ActivityQuery, most: int) -> list[ActivityEntry]:
        def found(entries: Entries) -> list[ActivityEntry]:
            return nlargest(most, filter(query.passes, entries), key=PLACE)

        return await self._aside(found)

    async def get(self, id_: str) -> ActivityEntry | None:
        return self._entries.get(id_)

    async def by_day(self, since: int) -> list[tuple[int, ActivityTotals]]:
        def by_day(entries: Entries) -> list[tuple[int, ActivityTotals]]:
            days: dict[int, list[ActivityTotals]] = {}
            for entry in entries:
                if entry.day >= since:
                    days.setdefault(entry.day, []).append(totals_of(entry))
            return [(day, summed(days[day])) for day in sorted(days)]

        return await self._aside(by_day)

    async def by(self, grouping: Grouping, since: int, most: int) -> list[ActivityGroup]:
        def by(entries: Entries) -> list[ActivityGroup]:
            groups: dict[str, list[ActivityEntry]] = {}
            for entry in entries:
                if entry.day >= since:
                    for name in entry.names(grouping):
                        groups.setdefault(name, []).append(entry)
            made = [_group(name, of_name) for name, of_name in groups.items()]
            return sorted(made, key=lambda each: (-each.last, each.name))[:most]

        return await self._aside(by)

    async def remove(self, before: float) -> int:
        return self._remove(lambda entry: entry.at <= before)

    async def forget(self, *, key: str | None = None, conversations: Collection[str] | None = None) -> int:
        return self._remove(
            lambda entry: key in (None, entry.key) and (conversations is None or entry.conversation in conversations)
        )

    async def _aside(self, work: Callable[[Entries], T]) -> T:
        """The result of ``work`` on the entries of this moment; of many, on a thread: it looks at each of them."""
        entries = list(self._entries.values())
        return work(entries) if len(entries) <= MANY else await asyncio.to_thread(work, entries)

    def _remove(self, chosen: Callable[[ActivityEntry], bool]) -> int:
        gone = [each.id for each in self._entries.values() if chosen(each)]
        for each in gone:
            del self._entries[each]
        return len(gone)


def _group(name: str, entries: Sequence[ActivityEntry]) -> ActivityGroup:
    times = [entry.at for entry in entries]
    return ActivityGroup(name=name, first=min(times), last=max(times), totals=summed(map(totals_of, entries)))
