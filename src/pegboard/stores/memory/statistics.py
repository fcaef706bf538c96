"""Statistics of tools and lessons from traffic, kept as long as the process lives."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence

from pegboard.averages import PRIOR, SMOOTHING, after_all, by_tool
from pegboard.model import Outcome, Smoothing, ToolId, ToolStatistics
from pegboard.traffic import Seen


class MemoryStatistics:
    def __init__(self, *, prior: ToolStatistics = PRIOR, smoothing: Smoothing = SMOOTHING) -> None:
        self._prior = prior
        self._smoothing = smoothing
        self._known: dict[ToolId, ToolStatistics] = {}

    async def observe(self, outcomes: Sequence[Outcome]) -> None:
        for tool, group in by_tool(outcomes).items():
            self._known[tool] = after_all(self._known.get(tool, self._prior), group, self._smoothing)

    async def read(self) -> Mapping[ToolId, ToolStatistics]:
        return dict(self._known)


class MemoryLessons:
    """Lessons of the ``capacity`` keys that were added to last."""

    def __init__(self, capacity: int = 16384) -> None:
        self._capacity = capacity
        self._known: OrderedDict[str, Seen] = OrderedDict()

    async def add(self, sums: Mapping[str, Seen]) -> None:
        for key, seen in sums.items():
            self._known[key] = self._known.get(key, Seen()).joined(seen)
            self._known.move_to_end(key)
        while len(self._known) > self._capacity:
            self._known.popitem(last=False)

    async def read(self, keys: Sequence[str]) -> Mapping[str, Seen]:
        return {key: self._known[key] for key in keys if key in self._known}
