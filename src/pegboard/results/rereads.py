"""Whether it pays to shorten a tool's results, by what is read of them afterwards."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from pegboard.model import ToolId
from pegboard.protocols import Clock

HALF_LIFE = 7 * 86_400.0
"""Seconds in which what was learnt counts half."""
GRACE = 2_000
"""Tokens by which reading on may cost more than shortening saved before the tool's results are left whole."""
ROUND_TRIP = 200
"""Tokens of one more call: its request and what stands around its answer."""
MOST_TOOLS = 10_000


@dataclass(slots=True)
class _Balance:
    saved: float = 0.0
    read: float = 0.0
    at: float = 0.0


class Rereads:
    """For each tool, what shortening saved and what reading on cost, in tokens that fade.

    A tool's results are left whole while reading on has cost more. As both fade, it is tried again.
    """

    def __init__(self, clock: Clock, *, half_life: float = HALF_LIFE) -> None:
        self._clock = clock
        self._half_life = half_life
        self._of: OrderedDict[ToolId, _Balance] = OrderedDict()

    def saved(self, tool: ToolId, tokens: int) -> None:
        self._faded(tool).saved += tokens

    def read(self, tool: ToolId, tokens: int) -> None:
        self._faded(tool).read += tokens + ROUND_TRIP

    def pays(self, tool: ToolId) -> bool:
        """Whether this tool's results should be shortened."""
        if tool not in self._of:
            return True
        balance = self._faded(tool)
        return balance.read <= balance.saved + GRACE

    def _faded(self, tool: ToolId) -> _Balance:
        now = self._clock.time()
        balance = self._of.setdefault(tool, _Balance(at=now))
        self._of.move_to_end(tool)
        factor = 0.5 ** (max(0.0, now - balance.at) / self._half_life)
        balance.saved, balance.read, balance.at = balance.saved * factor, balance.read * factor, now
        while len(self._of) > MOST_TOOLS:
            self._of.popitem(last=False)
        return balance
