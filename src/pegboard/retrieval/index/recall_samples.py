"""How much an index finds of what is nearest, measured while it is used: now and then a search is compared with all
tools."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from pegboard.errors import StoreError
from pegboard.model import Floats, ToolId
from pegboard.protocols import Clock, Filter, Hits, VectorIndex

WANTED = 10
"""The nearest tools that are looked for."""
MOST_COMPARED = 20_000
"""Tools that a search is compared with: all, or a sample of a larger board."""
AT_ONCE = 500
PAUSE = 9.0
"""Times as long as a comparison took is waited before the next one: a tenth of one core is used for a moment."""
HIGHEST = 2**32 - 1
SAME = 1e-5
"""Scores that differ by less are equal: of two tools at the end, one index finds the one, one the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallSample:
    """Of the ``wanted`` nearest tools the index had ``found`` so many, by comparison with ``compared`` tools."""

    wanted: int
    found: int
    compared: int


class RecallSamples:
    """A VectorIndex in front of another, of which every ``seconds`` one search at most is compared in the background
    with what the index itself says if it is asked for each tool by name, which no index approximates.

    With more than `MOST_COMPARED` tools, a sample of half as many or more is asked for, and what is counted are those
    of the sample that are among the nearest: the same recall, by fewer tools.
    """

    def __init__(
        self, index: VectorIndex, clock: Clock, report: Callable[[RecallSample], None], *, seconds: float
    ) -> None:
        self._index = index
        self._clock = clock
        self._report = report
        self._seconds = seconds
        self._due = clock.monotonic() + seconds
        self._some: set[ToolId] = set()
        self._highest = HIGHEST
        self._comparison: asyncio.Task[None] | None = None

    async def add(self, ids: Sequence[ToolId], vectors: Floats) -> None:
        await self._index.add(ids, vectors)
        for tool in ids:
            self._note(tool)

    async def remove(self, ids: Sequence[ToolId]) -> None:
        await self._index.remove(ids)
        self._some.difference_update(ids)

    async def ids(self) -> frozenset[ToolId]:
        return await self._index.ids()

    async def search(self, queries: Floats, k: int, where: Filter | None = None) -> list[Hits]:
        hits = await self._index.search(queries, k, where)
        named = where is not None and where.only is not None
        if not named and k >= WANTED and hits and self._clock.monotonic() >= self._due:
            self._due = self._clock.monotonic() + self._seconds
            self._comparison = asyncio.create_task(self._compare(queries[:1], where, hits[0][:WANTED]))
        return hits

    async def compared(self) -> None:
        """Wait until the last search that was to be compared is."""
        if self._comparison is not None:
            await self._comparison

    def _note(self, tool: ToolId) -> None:
        """Keep the tool if it is of the sample: whether it is, a hash of its name says."""
        if _mark(tool) > self._highest:
            return
        self._some.add(tool)
        if len(self._some) > MOST_COMPARED:
            self._highest //= 2
            self._some = {each for each in self._some if _mark(each) <= self._highest}

    async def _compare(self, query: Floats, where: Filter | None, hits: Hits) -> None:
        among = [tool for tool in self._some if where is None or where.passes(tool)]
        scores = dict(hits)
        try:
            for start in range(0, len(among), AT_ONCE):
                begin = self._clock.monotonic()
                only = Filter(only=frozenset(among[start : start + AT_ONCE]))
                [there] = await self._index.search(query, WANTED, only)
                scores |= there
                await asyncio.sleep(PAUSE * (self._clock.monotonic() - begin))
        except StoreError:  # the search itself had its answer
            return
        self._report(_sample(scores, hits, frozenset(among)))


def _mark(tool: ToolId) -> int:
    return crc32(f"{tool.server}\0{tool.name}".encode("utf-8", "surrogatepass"))


def _sample(scores: dict[ToolId, float], hits: Hits, among: frozenset[ToolId]) -> RecallSample:
    """Counts those of ``among`` that are the nearest by ``scores``, and which of them are ``hits``."""
    nearest = sorted(scores, key=scores.__getitem__, reverse=True)[:WANTED]
    there = {tool for tool, _ in hits}
    last = min((score for _, score in hits), default=-np.inf) + SAME if len(hits) >= WANTED else -np.inf
    wanted = [tool for tool in nearest if tool in among]
    found = sum(tool in there or scores[tool] <= last for tool in wanted)
    return RecallSample(wanted=len(wanted), found=found, compared=len(among))
