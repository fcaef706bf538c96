"""The turns that were answered, so that a report of an outcome can name one."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from pegboard.model import ToolId

MOST_TURNS = 10_000
MOST_NAMES = 1_000_000
"""Of the tools of all turns, those that turns share counted once: some 100 MB."""

Identity = tuple[str, str] | None
"""Whose turn it is (`Holder.identity`); None where no token is needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldTurn:
    """What an outcome needs of a turn: whose habits it taught, the query, and the name of each offered tool.

    Turns over the same tools share one ``names``. ``own`` says that they are tools of the caller's own.
    """

    habits: str
    query: str
    names: Mapping[ToolId, str]
    own: bool

    def tool(self, name: str) -> ToolId | None:
        """The offered tool of this name."""
        return next((tool for tool, offered in self.names.items() if offered == name), None)


class ToldTurns:
    """The last turns by their owner and id: nobody reports for another's turn."""

    def __init__(self, *, most_turns: int = MOST_TURNS, most_names: int = MOST_NAMES) -> None:
        self._most_turns = most_turns
        self._most_names = most_names
        self._turns: OrderedDict[tuple[Identity, str], ToldTurn] = OrderedDict()
        self._sharing: Counter[int] = Counter()
        self._names = 0

    def remember(self, owner: Identity, turn: str, told: ToldTurn) -> None:
        """Keep a turn, and forget the oldest ones for it; the newest is kept however many names it has."""
        if not self._sharing[id(told.names)]:
            self._names += len(told.names)
        self._sharing[id(told.names)] += 1
        self._turns[owner, turn] = told
        while len(self._turns) > self._most_turns or (self._names > self._most_names and len(self._turns) > 1):
            self._forget_oldest()

    def of(self, owner: Identity, turn: str | None) -> ToldTurn | None:
        return None if turn is None else self._turns.get((owner, turn))

    def _forget_oldest(self) -> None:
        _, told = self._turns.popitem(last=False)
        self._sharing[id(told.names)] -= 1
        if not self._sharing[id(told.names)]:
            del self._sharing[id(told.names)]
            self._names -= len(told.names)
